/** Renders Markdown on a thread of its own. */
import { serveThread } from "../../work/thread.ts";
import { BoundedMarkdown } from "./markdown.ts";
import type { MarkdownDone, MarkdownTask } from "./markdown-renderer.ts";

const markdown = new BoundedMarkdown();

serveThread(({ text, home, budgetMs }: MarkdownTask): MarkdownDone => {
  const before = process.threadCpuUsage();
  const rendered = markdown.render(text, home, budgetMs);
  const { user, system } = process.threadCpuUsage(before);
  return { rendered, cpuMs: (user + system) / 1_000 };
});
