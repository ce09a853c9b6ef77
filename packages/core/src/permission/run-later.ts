// Files of a project that make another program run something later: git, shells, editors and agents read them.
//
// In the user's own folder an agent does not change them without approval, and the sandbox mounts them read-only. In
// the workspace of a task they are files like others: what a task changes is reviewed before it lands.

/** Relative to the folder of the project. */
export const RUN_LATER: readonly string[] = [
  '.git',
  '.drover',
  '.mcp.json',
  '.claude',
  '.agents',
  '.envrc',
  '.husky',
  '.vscode/tasks.json',
  '.idea',
];

/** `path` is relative to the folder of the project. Case is ignored, as some file systems do. */
export function isRunLater(path: string): boolean {
  const parts = `/${path.replaceAll('\\', '/').toLowerCase()}/`;
  return RUN_LATER.some((name) => parts.includes(`/${name}/`));
}
