/** One entry of a 422's `errors`. */
export interface FieldError {
  readonly resource: string;
  readonly field?: string;
  readonly code: "missing" | "missing_field" | "invalid" | "already_exists" | "unprocessable" | "custom";
  readonly message?: string;
  readonly value?: unknown;
}

/** The service will not do what was asked: how it says so in REST. GraphQL shows the same text as UNPROCESSABLE. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly status: number;
  readonly errors: readonly FieldError[] | readonly string[] | string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, errors?: Refusal["errors"], headers: Refusal["headers"] = {}) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.headers = headers;
  }
}

export function invalid(...errors: FieldError[]): Refusal {
  return new Refusal(422, "Validation Failed", errors);
}

// GitHub: titles up to 256 characters, bodies and comments up to 65,536.
const MAX_TITLE = 256;
const MAX_BODY = 65_536;

export function checkTitle(resource: string, title: string): void {
  if (title.trim() === "") throw invalid({ resource, field: "title", code: "missing_field" });
  if ([...title].length > MAX_TITLE) {
    throw invalid({
      resource,
      field: "title",
      code: "custom",
      message: `title is too long (maximum is ${MAX_TITLE} characters)`,
    });
  }
}

export function checkBody(resource: string, body: string | null | undefined): void {
  if (body && body.length > MAX_BODY && [...body].length > MAX_BODY) {
    throw invalid({
      resource,
      field: "body",
      code: "custom",
      message: `body is too long (maximum is ${MAX_BODY} characters)`,
    });
  }
}
