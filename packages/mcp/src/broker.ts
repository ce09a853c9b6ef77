// The broker: the MCP servers of this process, shared by all agents in it.
//
// Guarantees
//   1. A shared server has one instance for equal entries of the same file in the same folder and with the same rights,
//      however many runs and agents use it. It ends with the last of them, or `idleMs` later.
//   2. A server of scope `task` has one instance per agent that calls it, started in the agent's folder. It ends with
//      the agent.
//   3. Tools are listed once, when servers are opened. A server that does not start, and a tool that cannot be used,
//      are named; the others are not affected.

import { ToolError } from '@drover/core/errors';
import { bestEffort } from '@drover/core/promises';
import type { CallServed, ServedTool } from '@drover/core/tools/served/served';
import type { ServedAgent, ServerLine } from '@drover/core/tools/served/tool-servers';
import { catalogueMcpTools, type Declared } from './catalogue.ts';
import { Instance, type InstanceOptions, type OpenWire } from './instance.ts';
import { askUserForMcpServer } from './asking.ts';
import type { ServerSpec } from './server-spec.ts';

/** Where an instance starts: the folder, and the sandbox of the agent whose own it is. */
export type StartPlace = { readonly cwd: string; readonly agent: ServedAgent | undefined };

export type BrokerOptions = Pick<InstanceOptions, 'version' | 'onDiagnostic' | 'pause'> & {
  readonly priorsOf: (spec: ServerSpec) => InstanceOptions['priors'];
  /** How long a shared server waits for its next user. Default: it ends with the last one. */
  readonly idleMs?: number;
};

export type Opened = {
  readonly tools: readonly ServedTool[];
  /** Servers that did not start, and tools that cannot be used: sentences for the user. */
  readonly problems: readonly Problem[];
  readonly lineFor: (agent: ServedAgent) => ServerLine;
  readonly close: () => Promise<void>;
};

export type Problem = { readonly server: string; readonly message: string; readonly isFatal: boolean };

export type Wanted = {
  readonly servers: readonly ServerSpec[];
  readonly cwd: string;
  /** Throws an error whose message is for the user. */
  readonly openWire: (spec: ServerSpec, place: StartPlace) => Promise<OpenWire>;
  /** Rights that its servers start with; servers of other rights are not shared with them. */
  readonly rights: string;
  /** The trace that calls of these agents belong to. */
  readonly traceparent?: string | undefined;
  /** Defer all tools if their definitions together have more characters. */
  readonly charsMax: number;
  /** Tools of an earlier process, which stay as they were. Then nothing is listed. */
  readonly frozen: readonly ServedTool[] | undefined;
};

type Shared = {
  readonly instance: Instance;
  readonly listeners: Set<() => void>;
  users: number;
  /** Ends it while nothing uses it. */
  idle?: NodeJS.Timeout;
};

export class Broker {
  readonly #options: BrokerOptions;
  readonly #shared = new Map<string, Shared>();
  readonly #own = new Set<Instance>();

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  async open(wanted: Wanted): Promise<Opened> {
    const { servers } = wanted;
    const used = new Map<string, Instance>();
    const releases: (() => Promise<void>)[] = [];
    const changed = new Set<string>();
    const own = new Set<Instance>();
    for (const spec of servers.filter(({ scope }) => scope === 'shared')) {
      const { instance, release } = this.#share(spec, wanted, () => changed.add(spec.name));
      used.set(spec.name, instance);
      releases.push(release);
    }
    const close = async () => {
      await Promise.all([
        ...releases.splice(0).map((release) => release()),
        ...[...own].map((each) => this.#end(each)),
      ]);
    };
    const { tools, problems } =
      wanted.frozen === undefined ? await this.#declared(wanted, used) : { tools: wanted.frozen, problems: [] };
    const lineFor = (agent: ServedAgent) => this.#lineFor(agent, { wanted, used, changed, own });
    return { tools, problems, lineFor, close };
  }

  /** Ends all servers. */
  async close(): Promise<void> {
    const shared = [...this.#shared.values()];
    for (const { idle } of shared) clearTimeout(idle);
    const all = [...shared.map(({ instance }) => instance), ...this.#own];
    this.#shared.clear();
    this.#own.clear();
    await Promise.all(all.map((instance) => instance.close()));
  }

  async #declared(wanted: Wanted, used: ReadonlyMap<string, Instance>): Promise<Declared> {
    const listed = await Promise.all(
      wanted.servers.map(async (spec) => {
        const shared = used.get(spec.name);
        // Tasks have instances of their own later; this one only lists.
        const instance = shared ?? this.#start(spec, { wanted, agent: undefined }, () => undefined);
        try {
          return { spec, listed: await instance.list() };
        } catch (error) {
          return { spec, problem: error instanceof Error ? error.message : String(error) };
        } finally {
          if (shared === undefined) await instance.close();
        }
      }),
    );
    return catalogueMcpTools(listed, wanted.charsMax);
  }

  #share(spec: ServerSpec, wanted: Wanted, listener: () => void) {
    const { cwd, rights } = wanted;
    const key = JSON.stringify([spec.name, spec.place, spec.reach, spec.timeoutMs, spec.startMs, cwd, rights]);
    const found = this.#shared.get(key);
    // One that is not started again any more is left to those who have it.
    const shared = found === undefined || found.instance.isGivenUp ? this.#newShared(spec, wanted) : found;
    this.#shared.set(key, shared);
    clearTimeout(shared.idle);
    shared.users += 1;
    shared.listeners.add(listener);
    const end = async () => {
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
      await shared.instance.close();
    };
    const release = async () => {
      shared.listeners.delete(listener);
      shared.users -= 1;
      if (shared.users > 0) return;
      const { idleMs = 0 } = this.#options;
      if (idleMs === 0 || shared.instance.isGivenUp) await end();
      else shared.idle = setTimeout(() => void bestEffort(end()), idleMs).unref();
    };
    return { instance: shared.instance, release };
  }

  #newShared(spec: ServerSpec, wanted: Wanted): Shared {
    const listeners = new Set<() => void>();
    const onToolsChanged = () => listeners.forEach((each) => each());
    return { instance: this.#start(spec, { wanted, agent: undefined }, onToolsChanged), listeners, users: 0 };
  }

  async #end(instance: Instance): Promise<void> {
    this.#own.delete(instance);
    await instance.close();
  }

  #start(spec: ServerSpec, { wanted, agent }: Start, onToolsChanged: () => void): Instance {
    const { version, onDiagnostic, pause, priorsOf } = this.#options;
    const place = { cwd: agent?.cwd ?? wanted.cwd, agent };
    return new Instance({
      spec,
      version,
      openWire: () => wanted.openWire(spec, place),
      priors: priorsOf(spec),
      onToolsChanged,
      onDiagnostic,
      ...(pause && { pause }),
    });
  }

  #lineFor(agent: ServedAgent, { wanted, used, changed, own }: Line): ServerLine {
    const ofAgent = new Map<string, Instance>();
    const told = new Set<string>();
    const instanceOf = (name: string): Instance | undefined => {
      const known = used.get(name) ?? ofAgent.get(name);
      const spec = known === undefined ? wanted.servers.find((each) => each.name === name) : undefined;
      if (spec === undefined) return known;
      const started = this.#start(spec, { wanted, agent }, () => changed.add(name));
      ofAgent.set(name, started);
      own.add(started);
      this.#own.add(started);
      return started;
    };
    const call: CallServed = async (asked, { onDelta }, signal) => {
      const instance = instanceOf(asked.server);
      if (instance === undefined) throw new ToolError(`The MCP server ${asked.server} is not configured any more.`);
      const { traceparent } = wanted;
      const caller = { call: asked, onDelta, onAsked: askUserForMcpServer(agent, asked), traceparent };
      const output = await instance.call(caller, signal);
      if (!changed.has(asked.server) || told.has(asked.server)) return output;
      told.add(asked.server);
      agent.emit({ type: 'warning', message: changedMcpToolsWarning(asked.server) });
      return { ...output, output: `${output.output}\n\n${changedMcpToolsNote(asked.server)}` };
    };
    const close = async () => {
      for (const instance of ofAgent.values()) own.delete(instance);
      await Promise.all([...ofAgent.values()].map((instance) => this.#end(instance)));
    };
    return { call, close };
  }
}

type Start = { readonly wanted: Wanted; readonly agent: ServedAgent | undefined };

type Line = {
  readonly wanted: Wanted;
  readonly used: ReadonlyMap<string, Instance>;
  /** Servers whose tools have changed since they were listed. */
  readonly changed: Set<string>;
  /** Instances of single agents, which end with all of this at the latest. */
  readonly own: Set<Instance>;
};

function changedMcpToolsWarning(server: string): string {
  return `the MCP server ${server} has changed its tools; the agent keeps those that it began with`;
}

function changedMcpToolsNote(server: string): string {
  return `[The MCP server ${server} has changed its tools. You keep those that you know; one that is gone answers with an error.]`;
}
