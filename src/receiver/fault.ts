/** The request cannot be taken as a delivery. The message says what was wrong and what would be right. */
export class DeliveryFault extends Error {
  override name = "DeliveryFault";
  /** 408 and 503: the same request may be taken another time. */
  readonly status: 400 | 401 | 408 | 413 | 415 | 503;
  constructor(status: DeliveryFault["status"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}
