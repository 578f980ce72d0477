/** Whether this is the npm package, whose sources are JavaScript. */
const isPackage = import.meta.filename.endsWith(".js");

/** The command that starts everything, as a person types it here. */
export const START = isPackage ? "npx tain up" : "npm start";

/** A command of `tain`, as a person types it here. */
export function typed(command: string): string {
  return isPackage ? `npx tain ${command}` : `npm run tain -- ${command}`;
}
