// Scripts from files: YAML, checked with line and column, or a module that exports one.

import { readFile } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ScriptError, type AnswerSource, type Script } from './script.ts';

const MODULES = ['.ts', '.mts', '.js', '.mjs'];

/** Returns the file's text, or rejects with an error whose message is `what; fix`. */
export type ReadText = (path: string) => Promise<string>;

const readScriptPlainly: ReadText = (path) =>
  readFile(path, 'utf8').catch((error: Error) => {
    throw new Error(`cannot be read: ${error.message}; name a script that exists`, { cause: error });
  });

/**
 * Throws a ScriptError with a line `path:line:column: what; fix` for each mistake. Pass `read` to bound what is read:
 * the default waits for the writer of a pipe.
 */
export async function loadRehearsalScript(path: string, read: ReadText = readScriptPlainly): Promise<Script> {
  // A module is read too, so that `read` refuses pipes and devices before Node opens the module.
  const text = await read(path).catch((error: unknown) => {
    throw new ScriptError(`${path}:1:1: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  });
  return MODULES.includes(extname(path)) ? await importRehearsalScript(path) : await parseRehearsalScript(text, path);
}

/** `path` is used in messages only. */
export async function parseRehearsalScript(text: string, path: string): Promise<Script> {
  const [{ readDocument }, { scriptSchema }] = await Promise.all([
    import('@drover/documents/read-document'),
    import('./schema.ts'),
  ]);
  const read = readDocument<Script>(text, path, { what: 'the script', schema: scriptSchema, mayAlias: true });
  if ('mistakes' in read) throw new ScriptError(read.mistakes.join('\n'));
  return nonEmptyScript(read.value, path);
}

/** Accepts a default export that is a script, a list of answers, or a function that answers. */
async function importRehearsalScript(path: string): Promise<Script> {
  const module = await import(pathToFileURL(resolve(path)).href).catch((error: unknown) => {
    throw new ScriptError(
      `${path}:1:1: cannot be imported: ${error instanceof Error ? error.message : String(error)}; correct the module`,
      { cause: error },
    );
  });
  // A module's exports are not checked here: a script is trusted like any code that the user runs.
  const exported = (module as { readonly default?: Script | readonly AnswerSource[] | AnswerSource }).default;
  if (typeof exported === 'function') return { answers: [exported] };
  if (Array.isArray(exported)) return { answers: exported };
  if (typeof exported === 'object' && exported !== null) return nonEmptyScript(exported as Script, path);
  throw new ScriptError(`${path}:1:1: exports no script; write \`export default { answers: [...] }\``);
}

function nonEmptyScript(script: Script, path: string): Script {
  if (script.answers === undefined && script.agents === undefined && script.otherwise === undefined)
    throw new ScriptError(`${path}:1:1: the script has no answers; give \`answers\` or \`agents\``);
  return script;
}
