// Marks of the server processes of this drover, on disk: the next drover ends what a killed one left behind.
//
// The file is named after the process and says when that began, because process ids are used again.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { endOrphanProcesses, processStartOf } from '@drover/core/tools/process/tree';

const opened = new Map<string, Marks>();

export class Marks {
  readonly #file: string;
  readonly #folder: string;
  readonly #marks = new Set<string>();

  /** The one of this process: a file holds all its marks. */
  static of(home: string): Marks {
    const known = opened.get(home) ?? new Marks(home);
    opened.set(home, known);
    return known;
  }

  private constructor(home: string) {
    this.#folder = serverMarksFolder(home);
    this.#file = join(this.#folder, `${process.pid}.json`);
  }

  /** The mark is on disk when this returns. */
  add(mark: string): string {
    this.#marks.add(mark);
    mkdirSync(this.#folder, { recursive: true });
    this.#write();
    return mark;
  }

  remove(mark: string): void {
    if (!this.#marks.delete(mark)) return;
    if (this.#marks.size === 0) rmSync(this.#file, { force: true });
    else this.#write();
  }

  #write(): void {
    writeFileSync(this.#file, JSON.stringify({ began: processStartOf(process.pid), marks: [...this.#marks] }));
  }
}

/** Ends servers of drovers that are gone. Returns how many processes there were. */
export function endLeftMcpServers(home: string): number {
  const folder = serverMarksFolder(home);
  return listMarkFiles(folder).reduce(
    (count, name) => count + endMarkedServersIn(join(folder, name), Number(name.slice(0, -'.json'.length))),
    0,
  );
}

function endMarkedServersIn(file: string, pid: number): number {
  const { began, marks } = readServerMarks(file);
  const isAlive = pid === process.pid || (began !== '' && processStartOf(pid) === began);
  if (isAlive) return 0;
  const ended = marks.reduce((count, mark) => count + endOrphanProcesses(mark), 0);
  rmSync(file, { force: true });
  return ended;
}

function readServerMarks(file: string): { readonly began: string; readonly marks: readonly string[] } {
  try {
    const record = JSON.parse(readFileSync(file, 'utf8')) as Json;
    if (!isJsonObject(record) || !Array.isArray(record['marks'])) return { began: '', marks: [] };
    const marks = record['marks'].filter((each) => typeof each === 'string');
    const { began } = record;
    return { began: typeof began === 'string' ? began : '', marks };
  } catch (error) {
    // Cut off by a kill, or removed by another drover.
    if (error instanceof SyntaxError || (error instanceof Error && 'code' in error)) return { began: '', marks: [] };
    throw error;
  }
}

function listMarkFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => /^\d+\.json$/.test(name));
  } catch (error) {
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}

function serverMarksFolder(home: string): string {
  return join(home, 'mcp', 'running');
}
