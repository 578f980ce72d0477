import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";

export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** What somebody in front of the app does with a request: answers it, or passes it on, at once or later. */
export type Taker = (request: IncomingMessage, response: ServerResponse, way: Way) => void;

export interface Way {
  /** Has the request answered by whoever comes next. */
  pass: Listener;
  /** Whether the app has begun to close, which a connection that stays would hold up. */
  isClosing(): boolean;
}

/**
 * Puts somebody in front of everything else that the app does with a request, which takes several times as long as a short
 * answer does. What comes once the app has begun to close goes to the app alone.
 */
export function goInFront(app: FastifyInstance, take: Taker): void {
  const { server } = app;
  const usual = server.listeners("request") as Listener[];
  let isClosing = false;
  const way: Way = {
    pass: (request, response) => {
      for (const listener of usual) listener.call(server, request, response);
    },
    isClosing: () => isClosing,
  };
  server.removeAllListeners("request");
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (isClosing) way.pass(request, response);
    else take(request, response, way);
  });
  app.addHook("preClose", async () => {
    isClosing = true;
  });
}
