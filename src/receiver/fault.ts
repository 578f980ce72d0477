/** The request cannot be taken as a delivery. The message says what was wrong and what would be right. */
export class DeliveryFault extends Error {
  override name = "DeliveryFault";
  readonly status: 400 | 401 | 413 | 415;
  constructor(status: DeliveryFault["status"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}
