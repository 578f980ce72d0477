/** Rings for one who waits, also if they come later. */
export class Bell {
  #hasRung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#hasRung = true;
    this.#wake?.();
  }

  async rung(): Promise<void> {
    if (!this.#hasRung) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    this.#hasRung = false;
  }
}
