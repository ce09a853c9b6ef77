// The context of every screen: the client, and ways to show messages to the user.

import type { DroverClient } from '@drover/client/client';
import type { ServerInfo } from '@drover/client/wire';
import type { Connection } from '@drover/client/stream';

export type Screen = {
  readonly element: HTMLElement;
  readonly title: () => string;
  readonly stop: () => void;
};

export type PageApp = {
  readonly client: DroverClient;
  /** The served folder and the models, asked for once. */
  readonly server: () => Promise<ServerInfo>;
  readonly onConnection: (connection: Connection) => void;
  /** A refusal that ends what is shown. */
  readonly onProblem: (error: unknown) => void;
  /** Whether a process works on it, by the list. */
  readonly isLive: (id: string) => boolean;
  /** The list may be out of date. */
  readonly refresh: () => void;
  readonly go: (route: string) => void;
};

/** True for events that begin or end the waiting for an answer. */
export function isAnswerable(type: string): boolean {
  return ['permission_request', 'permission_decision', 'plan_proposed', 'plan_comment', 'plan_ready'].includes(type);
}

/** The title of a tab: the work, and the folder it is done in. */
export function titled(title: string, folder: string): string {
  return folder === '' ? title : `${title} · ${folder.split('/').at(-1)}`;
}

export function pageErrorWords(error: unknown): string {
  if (error instanceof TypeError) return 'The server can’t be reached.';
  return error instanceof Error ? error.message : String(error);
}
