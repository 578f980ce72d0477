/** Stands for people, and for everything else that belongs to no repository. */
export const PEOPLE = 0;
