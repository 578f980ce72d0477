import type { Context } from "../../context.ts";
import type { StoredDelivery } from "../../inbox/deliveries.ts";
import { MADE_HOOK } from "../../inbox/inbox.ts";
import { CommandError, listOf } from "../terminal/command.ts";
import { grouped, plain, spanOf, styled, tableLines } from "../terminal/output.ts";

/** These deliveries are not in the inbox, or no longer. */
export function unknownDelivery(names: readonly string[], { config }: Pick<Context, "config">): CommandError {
  return new CommandError(
    `The inbox has no delivery ${listOf(names, "or")}: \`tain deliveries list\` shows what it has; settled ones are kept for ${spanOf(config.deliveryRetentionMs)}`,
  );
}

const STATUS_COLOURS = { pending: "cyan", applied: "green", ignored: "dim", failed: "red" } as const;

/** Pure but for colours. */
export function deliveriesTable(found: readonly StoredDelivery[], { clock }: Pick<Context, "clock">): string {
  const now = clock.now().getTime();
  const rows = found.map((delivery) => [
    `${spanOf(now - delivery.receivedAt.getTime())} ago`,
    eventName(delivery),
    delivery.repository ?? (delivery.repositoryId === null ? "-" : String(delivery.repositoryId)),
    styled(STATUS_COLOURS[delivery.status], delivery.status),
    delivery.guid,
    plain(delivery.reason ?? ""),
  ]);
  return tableLines(["RECEIVED", "EVENT", "REPOSITORY", "STATUS", "GUID", "REASON"], rows);
}

function eventName({ event, action }: StoredDelivery): string {
  return action === null ? event : `${event}.${action}`;
}

/** Everything of one delivery, a line each; the payload after it, if it is there. Pure but for colours. */
export function detailsOf(delivery: StoredDelivery & { payload?: unknown }, { clock }: Pick<Context, "clock">): string {
  const { guid, id, hookId, repository, repositoryId, status, attempts, reason, receivedAt, settledAt } = delivery;
  const ago = (at: Date) => `${at.toISOString()} (${spanOf(clock.now().getTime() - at.getTime())} ago)`;
  const rows: [string, string][] = [
    ["GUID", guid],
    ["id", id],
    ["hook", hookOf(hookId)],
    ["event", eventName(delivery)],
    ["repository", [repository, repositoryId].filter((part) => part !== null).join(", id ") || "none"],
    ["status", styled(STATUS_COLOURS[status], status)],
    ["reason", plain(reason ?? "-")],
    ["attempts", String(attempts)],
    ["received", ago(receivedAt)],
    ["settled", settledAt === null ? "-" : ago(settledAt)],
    ["payload", `${grouped(delivery.payloadBytes)} bytes`],
  ];
  const lines = rows.map(([name, value]) => `${name.padEnd(10)}  ${value}`);
  if ("payload" in delivery) lines.push(plain(JSON.stringify(delivery.payload, null, 2)));
  return lines.join("\n");
}

function hookOf(hookId: number): string {
  if (hookId === MADE_HOOK) return "none: made here, of a change that no webhook told of";
  return hookId === 0 ? "not named" : String(hookId);
}
