// drover doctor: checks what works here, what is missing, and how to fix it.
//
// Users run it when something is broken, so no problem ends it: a mistake in a config is a finding.

import { defineCommand, flagOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { doctorExitCode, type Finding, doctorFindingLines } from '../doctor/finding.ts';
import { checkMachine } from '../doctor/machine.ts';
import { checkPlaceForDoctor } from '../doctor/place.ts';
import { checkMcpServers } from '../doctor/servers.ts';
import { checkSandbox } from '../doctor/sandbox.ts';
import { checkProviderAnswers, checkProviders } from '../doctor/providers.ts';
import { printLine, printJsonLine } from '../io.ts';
import { findWorkFolder } from '../start/settings.ts';

export const doctor = defineCommand({
  options: {
    online: flagOption('Options:', 'Send one short request to each provider that has a key (default: no requests)'),
    model: valueOption('Options:', 'PROVIDER/NAME', 'Model to check (default: model of your config)', parseNonEmpty),
    cwd: valueOption('Options:', 'DIR', 'Folder to check (default: the current folder)', parseNonEmpty),
    json: flagOption('Options:', 'Print {ok, checks} as one JSON object'),
  },
  examples: [
    ['drover doctor', 'Exit code 0: drover can work; 2: fix a problem first'],
    ['drover doctor --online', 'Does the key work? Costs a few tokens. Exit code 9: a provider does not answer'],
    [`drover doctor --json | jq '.checks[] | select(.state != "good")'`, 'List only problems and warnings'],
  ],
  async run({ online, model, cwd: folder, json }, io) {
    const cwd = await findWorkFolder(folder, io);
    const [machine, place] = await Promise.all([checkMachine(io, cwd), checkPlaceForDoctor(io, cwd)]);
    const { settings } = place;
    const sandbox = await checkSandbox(io, settings);
    const providers = settings === undefined ? [] : checkProviders(settings, model, io.cwd);
    const answers = settings !== undefined && online ? await checkProviderAnswers(settings, model, io.cwd) : [];
    // A provider's answer may contain the key.
    const redactor = await diagnosticsRedactor(io);
    const servers = settings === undefined ? [] : await checkMcpServers(settings, cwd, io);
    const findings = [...machine, ...sandbox, ...place.findings, ...servers, ...providers, ...answers].map(
      (finding): Finding => ({
        ...finding,
        says: redactor.text(finding.says),
      }),
    );
    const code = doctorExitCode(findings);
    const program = { ok: code === 0, checks: findings };
    await (json ? printJsonLine(io, program) : printLine(io, doctorFindingLines(findings, io)));
    return code;
  },
});
