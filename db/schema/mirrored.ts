import { ne } from "drizzle-orm";
import { repositorySyncs } from "./following.ts";

/** `MIRRORED` (`states.ts`) in statements that drizzle builds. */
export const IS_MIRRORED = ne(repositorySyncs.state, "gone");
