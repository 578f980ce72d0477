/** A request that cannot be answered as it was sent. The message is for the caller. */
export class HttpError extends Error {
  override name = "HttpError";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    { headers = {}, ...options }: ErrorOptions & { headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message, options);
    this.status = status;
    this.headers = headers;
  }
}

/** What Node.js refused before there was a request, by its `code`. */
export function parserError(error: Error & { code?: string }): HttpError {
  switch (error.code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new HttpError(408, "Client Timeout", { cause: error });
    case "HPE_HEADER_OVERFLOW":
      return new HttpError(431, "Exceeded maximum allowed HTTP header size", { cause: error });
    default:
      return new HttpError(400, "Client Error", { cause: error });
  }
}
