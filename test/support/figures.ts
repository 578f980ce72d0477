/** Prints what a test has measured as one line of JSON, which `npm run proofs` reads. */
export function printFigures(of: string, figures: Record<string, unknown>): void {
  console.info(JSON.stringify({ figures: of, ...figures }));
}
