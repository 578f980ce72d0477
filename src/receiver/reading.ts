import { isUtf8 } from "node:buffer";
import { isMarkedAsUntransferable } from "node:worker_threads";
import { verify } from "@octokit/webhooks-methods";
import { type HookHolder, hookSecret } from "../config/hook-secrets.ts";
import type { HeldBody } from "../http/body.ts";
import { CallersLine, LineFullError } from "../work/callers-line.ts";
import { Thread, TooMuchWorkError } from "../work/thread.ts";
import { type Envelope, emptyBody } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";
import { type PayloadForm, type ReadPayload, readPayload } from "./payload.ts";

/** What a body is checked against, and how it is read. */
interface BodyCheck {
  form: PayloadForm;
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** The secrets that may have signed it, tried in this order. */
  groups: readonly (readonly string[])[];
}

/** The group whose secret signed the body, and its payload. */
interface Verified {
  group: number;
  read: ReadPayload;
}

/**
 * The signature covers the exact bytes. Until it is checked, no answer depends on their contents.
 * @throws DeliveryFault 400 for a body that is not UTF-8, 401 for a wrong signature, and as `readPayload`
 */
export async function readVerified(body: Buffer, { form, ...check }: BodyCheck): Promise<Verified> {
  if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
  const text = body.toString("utf8");
  const group = await signedBy(text, check);
  if (group === -1)
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 does not match the body: the hook's secret is none that WEBHOOK_SECRET gives it",
    );
  return { group, read: readPayload(form, body, text) };
}

/**
 * The group whose secret signed exactly this text; -1: none.
 * @param text is not empty, and was well-formed UTF-8: encoded again, it gives exactly the bytes that came
 */
export async function signedBy(text: string, { signature, groups }: Omit<BodyCheck, "form">): Promise<number> {
  for (const [at, secrets] of groups.entries()) {
    for (const secret of secrets) if (await verify(secret, text, signature)) return at;
  }
  return -1;
}

/** A body to read on a thread of its own. */
export interface ApartBody extends BodyCheck {
  pieces: readonly Uint8Array[];
}

/** What a thread answers. Bytes arrive as plain ones. */
export type ReadApart =
  | { group: number; read: Omit<ReadPayload, "payload"> & { payload: Uint8Array } }
  | { fault: Pick<DeliveryFault, "status" | "message"> };

/** The memory of these bytes, for another thread to have in place of this one. What others share is copied instead. */
export function givenWith({ buffer }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && !isMarkedAsUntransferable(buffer) ? [buffer] : [];
}

/** A smaller body is read within 5 ms, whatever is in it. The largest would hold the event loop for seconds. */
const READ_APART_BYTES = 128 * 1024;
/** 25 MB of letters beyond Latin-1 take 50 MB as text, as much again once parsed, and the values beside them. */
const THREAD_MEMORY_MB = 512;
/** Large bodies are read one after the other. Hooks take turns; upstream gives a delivery up after 10 s. */
const READING_TURNS = { most: 1, mostEach: 1, mostWaitingEach: 50, mostWaiting: 200, patienceMs: 8_000 };

/** Reads verified deliveries, the large ones beside the event loop. */
export class DeliveryReading {
  readonly #secrets: readonly string[];
  readonly #turns = new CallersLine(READING_TURNS);
  readonly #thread: Thread<ApartBody, ReadApart>;

  /** @param secrets those of WEBHOOK_SECRET */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    const module = new URL("./reading-thread.ts", import.meta.url);
    this.#thread = new Thread(module, { budgetMs: 20_000, memoryMb: THREAD_MEMORY_MB });
  }

  /**
   * The payload of a body, and the holder whose own secret signed exactly these bytes; null: one of WEBHOOK_SECRET itself
   * did, as of hooks that were made before holders had secrets of their own.
   * @param body is given away if it is large, and its pieces are empty afterwards
   * @param envelope.holder whose hook it is, by headers that nobody signs: they only choose which secret is tried
   * @param address where it came from. A stranger who names another's hook waits in a line of their own
   * @throws DeliveryFault 400 for an empty body, 503 when too many large bodies are being read, and as `readVerified`
   */
  async read(
    body: HeldBody,
    { form, signature, holder, hookId }: Pick<Envelope, "form" | "signature" | "holder" | "hookId">,
    address: string,
  ): Promise<{ signer: HookHolder | null; read: ReadPayload }> {
    const { size } = body;
    if (size === 0) throw emptyBody();
    const own = holder ? this.#secrets.map((secret) => hookSecret(secret, holder)) : [];
    const check = { form, signature, groups: [own, this.#secrets] };
    const hook = holder ? `${holder.type} ${holder.id}` : `hook ${hookId}`;
    const { group, read } =
      size < READ_APART_BYTES
        ? await readVerified(body.bytes, check)
        : await this.#readApart(body.pieces, check, `${address} ${hook}`);
    return { signer: signerOf(group, holder), read };
  }

  async #readApart(pieces: readonly Buffer[], check: BodyCheck, hook: string): Promise<Verified> {
    try {
      using _turn = await this.#turns.enter(hook);
      const said = await this.#thread.run({ pieces, ...check }, pieces.flatMap(givenWith));
      if ("fault" in said) throw new DeliveryFault(said.fault.status, said.fault.message);
      const { buffer, byteOffset, byteLength } = said.read.payload;
      return { ...said, read: { ...said.read, payload: Buffer.from(buffer, byteOffset, byteLength) } };
    } catch (error) {
      if (!(error instanceof LineFullError || error instanceof TooMuchWorkError)) throw error;
      throw new DeliveryFault(503, "Too many large bodies are being checked at the moment: send it again later", {
        cause: error,
      });
    }
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}

function signerOf(group: number, holder: HookHolder | null): HookHolder | null {
  if (group === 1) return null;
  return holder;
}
