/** Renders Markdown on a thread of its own. */
import { serveThread } from "../../operations/threads.ts";
import { BoundedMarkdown, type Rendered } from "./markdown.ts";
import type { MarkdownTask } from "./markdown-renderer.ts";

const markdown = new BoundedMarkdown();

serveThread(({ text, home, budgetMs }: MarkdownTask): Rendered | null => markdown.render(text, home, budgetMs));
