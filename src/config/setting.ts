/** One setting of the environment. */
export interface Setting<T> {
  name: string;
  /** Answers the value, or throws an Error that says what would be right. */
  read: (text: string) => T;
  /** The text that stands when the variable is unset or empty. Neither this nor `required`: the value is null then. */
  default?: string;
  required?: true;
  /** Its value is never logged or printed. */
  secret?: true;
  /** What it is for, in one or two sentences of Markdown. */
  about: string;
}
