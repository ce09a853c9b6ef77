// Project files that make other programs run something later: git, shells, editors and agents read them.
//
// In the user's own folder, an agent needs approval to change them, and the sandbox mounts them read-only. In a task's
// workspace they are ordinary files, because the user reviews a task's changes.

/** Paths relative to the project folder. */
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

/** `path` is relative to the project folder. Ignores case, because some file systems do. */
export function isRunLater(path: string): boolean {
  const parts = `/${path.replaceAll('\\', '/').toLowerCase()}/`;
  return RUN_LATER.some((name) => parts.includes(`/${name}/`));
}
