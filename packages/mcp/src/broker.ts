// The broker: the MCP servers of this process, shared by all agents in it.
//
// Guarantees
//   1. A shared server has one instance for equal entries in the same folder, however many runs and agents use it. It
//      ends with the last of them.
//   2. A server of scope `task` has one instance per agent that calls it, started in the agent's folder. It ends with
//      the agent.
//   3. Tools are listed once, when servers are opened. A server that does not start, and a tool that cannot be used, are
//      named; the others are not affected.

import { ToolError } from '@drover/core/errors';
import type { CallServed, ServedTool } from '@drover/core/tools/served/served';
import type { ServedAgent, ServerLine } from '@drover/core/tools/served/tool-servers';
import { catalogue, type Declared } from './catalogue.ts';
import { Instance, type InstanceOptions, type OpenWire } from './instance.ts';
import { askUser } from './asking.ts';
import type { ServerSpec } from './server-spec.ts';

/** Where an instance starts: the folder, and the sandbox of the agent whose own it is. */
export type StartPlace = { readonly cwd: string; readonly agent: ServedAgent | undefined };

export type BrokerOptions = Pick<InstanceOptions, 'version' | 'onDiagnostic' | 'pause'> & {
  /** Throws an error whose message is for the user. */
  readonly openWire: (spec: ServerSpec, place: StartPlace) => Promise<OpenWire>;
  readonly priorsOf: (spec: ServerSpec) => InstanceOptions['priors'];
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
  /** Defer all tools if their definitions together have more characters. */
  readonly charsMax: number;
  /** Tools of an earlier process, which stay as they were. Then nothing is listed. */
  readonly frozen: readonly ServedTool[] | undefined;
};

type Shared = { readonly instance: Instance; readonly listeners: Set<() => void>; users: number };

export class Broker {
  readonly #options: BrokerOptions;
  readonly #shared = new Map<string, Shared>();
  readonly #own = new Set<Instance>();

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  async open(wanted: Wanted): Promise<Opened> {
    const { servers, cwd } = wanted;
    const used = new Map<string, Instance>();
    const releases: (() => Promise<void>)[] = [];
    const changed = new Set<string>();
    for (const spec of servers.filter(({ scope }) => scope === 'shared')) {
      const { instance, release } = this.#share(spec, cwd, () => changed.add(spec.name));
      used.set(spec.name, instance);
      releases.push(release);
    }
    const close = async () => void (await Promise.all(releases.splice(0).map((release) => release())));
    const { tools, problems } =
      wanted.frozen === undefined ? await this.#declared(wanted, used) : { tools: wanted.frozen, problems: [] };
    const lineFor = (agent: ServedAgent) => this.#lineFor(agent, { servers, used, changed });
    return { tools, problems, lineFor, close };
  }

  /** Ends all servers. */
  async close(): Promise<void> {
    const all = [...[...this.#shared.values()].map(({ instance }) => instance), ...this.#own];
    this.#shared.clear();
    this.#own.clear();
    await Promise.all(all.map((instance) => instance.close()));
  }

  async #declared({ servers, cwd, charsMax }: Wanted, used: ReadonlyMap<string, Instance>): Promise<Declared> {
    const listed = await Promise.all(
      servers.map(async (spec) => {
        const shared = used.get(spec.name);
        // Tasks have instances of their own later; this one only lists.
        const instance = shared ?? this.#start(spec, { cwd, agent: undefined }, () => undefined);
        try {
          return { spec, listed: await instance.list() };
        } catch (error) {
          return { spec, problem: error instanceof Error ? error.message : String(error) };
        } finally {
          if (shared === undefined) await instance.close();
        }
      }),
    );
    return catalogue(listed, charsMax);
  }

  #share(spec: ServerSpec, cwd: string, listener: () => void) {
    const key = JSON.stringify([spec.name, spec.reach, spec.timeoutMs, cwd]);
    const known = this.#shared.get(key);
    const listeners = known?.listeners ?? new Set<() => void>();
    const onToolsChanged = () => listeners.forEach((each) => each());
    const shared = known ?? {
      instance: this.#start(spec, { cwd, agent: undefined }, onToolsChanged),
      listeners,
      users: 0,
    };
    this.#shared.set(key, shared);
    shared.users += 1;
    listeners.add(listener);
    const release = async () => {
      listeners.delete(listener);
      shared.users -= 1;
      if (shared.users > 0) return;
      this.#shared.delete(key);
      await shared.instance.close();
    };
    return { instance: shared.instance, release };
  }

  #start(spec: ServerSpec, place: StartPlace, onToolsChanged: () => void): Instance {
    const { version, onDiagnostic, pause, openWire, priorsOf } = this.#options;
    return new Instance({
      spec,
      version,
      openWire: () => openWire(spec, place),
      priors: priorsOf(spec),
      onToolsChanged,
      onDiagnostic,
      ...(pause && { pause }),
    });
  }

  #lineFor(agent: ServedAgent, { servers, used, changed }: Line): ServerLine {
    const own = new Map<string, Instance>();
    const told = new Set<string>();
    const instanceOf = (name: string): Instance | undefined => {
      const known = used.get(name) ?? own.get(name);
      const spec = known === undefined ? servers.find((each) => each.name === name) : undefined;
      if (spec === undefined) return known;
      const started = this.#start(spec, { cwd: agent.cwd, agent }, () => changed.add(name));
      own.set(name, started);
      this.#own.add(started);
      return started;
    };
    const call: CallServed = async (asked, { onDelta }, signal) => {
      const instance = instanceOf(asked.server);
      if (instance === undefined) throw new ToolError(`The MCP server ${asked.server} is not configured any more.`);
      const output = await instance.call({ call: asked, onDelta, onAsked: askUser(agent, asked) }, signal);
      if (!changed.has(asked.server) || told.has(asked.server)) return output;
      told.add(asked.server);
      agent.emit({ type: 'warning', message: changedWarning(asked.server) });
      return { ...output, output: `${output.output}\n\n${changedNote(asked.server)}` };
    };
    const close = async () => {
      for (const instance of own.values()) this.#own.delete(instance);
      await Promise.all([...own.values()].map((instance) => instance.close()));
    };
    return { call, close };
  }
}

type Line = {
  readonly servers: readonly ServerSpec[];
  readonly used: ReadonlyMap<string, Instance>;
  /** Servers whose tools have changed since they were listed. */
  readonly changed: Set<string>;
};

function changedWarning(server: string): string {
  return `the MCP server ${server} has changed its tools; the agent keeps those that it began with`;
}

function changedNote(server: string): string {
  return `[The MCP server ${server} has changed its tools. You keep those that you know; one that is gone answers with an error.]`;
}
