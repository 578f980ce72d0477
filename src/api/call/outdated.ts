import type { WantedList } from "../../mirror/store/wanted-lists.ts";
import { UnreadFault } from "../dialect/fault.ts";
import type { Answer } from "./call.ts";

/** Something has happened that is not here yet. Upstream answers, if it can be asked for the caller. */
export class OutdatedFault extends UnreadFault {
  override name = "OutdatedFault";
  /** The answer for all others: it says how old it is. */
  readonly older: () => Promise<Answer>;

  constructor(wanted: WantedList | null, older: () => Promise<Answer>) {
    super(wanted);
    this.older = older;
  }
}
