/** One setting of the environment. */
export interface Setting<T> {
  name: string;
  /** Returns the value, or throws an Error that says what a right value looks like. */
  read: (text: string) => T;
  /**
   * The text that is read when the variable is unset or empty. With neither a default nor `required`, the value is
   * null.
   */
  default?: string;
  required?: true;
  /** The setting's value is never logged or printed. */
  secret?: true;
  /** What it is for, in one or two sentences of Markdown. */
  about: string;
}
