// drover doctor: checks what works here, what is missing, and how to fix it.
//
// Users run it when something is broken, so no problem ends it: a mistake in a config is a finding.

import { command, flag, nonEmpty, value } from '../start/command.ts';
import { redactorFor } from '../diagnostics.ts';
import { doctorExitCode, type Finding, findingLines } from '../doctor/finding.ts';
import { machineFindings } from '../doctor/machine.ts';
import { lookAtPlace } from '../doctor/place.ts';
import { serverFindings } from '../doctor/servers.ts';
import { sandboxFindings } from '../doctor/sandbox.ts';
import { answerFindings, providerFindings } from '../doctor/providers.ts';
import { tell, tellJson } from '../io.ts';
import { workFolder } from '../start/settings.ts';

export const doctor = command({
  options: {
    online: flag('Options:', 'Send one short request to each provider that has a key (default: no requests)'),
    model: value('Options:', 'PROVIDER/NAME', 'Model to check (default: model of your config)', nonEmpty),
    cwd: value('Options:', 'DIR', 'Folder to check (default: the current folder)', nonEmpty),
    json: flag('Options:', 'Print {ok, checks} as one JSON object'),
  },
  examples: [
    ['drover doctor', 'Exit code 0: drover can work; 2: fix a problem first'],
    ['drover doctor --online', 'Does the key work? Costs a few tokens. Exit code 9: a provider does not answer'],
    [`drover doctor --json | jq '.checks[] | select(.state != "good")'`, 'List only problems and warnings'],
  ],
  async run({ online, model, cwd: folder, json }, io) {
    const cwd = await workFolder(folder, io);
    const [machine, place] = await Promise.all([machineFindings(io, cwd), lookAtPlace(io, cwd)]);
    const { settings } = place;
    const sandbox = await sandboxFindings(io, settings);
    const providers = settings === undefined ? [] : providerFindings(settings, model, io.cwd);
    const answers = settings !== undefined && online ? await answerFindings(settings, model, io.cwd) : [];
    // A provider's answer may contain the key.
    const redactor = await redactorFor(io);
    const servers = settings === undefined ? [] : await serverFindings(settings, cwd, io);
    const findings = [...machine, ...sandbox, ...place.findings, ...servers, ...providers, ...answers].map(
      (finding): Finding => ({
        ...finding,
        says: redactor.text(finding.says),
      }),
    );
    const code = doctorExitCode(findings);
    const program = { ok: code === 0, checks: findings };
    await (json ? tellJson(io, program) : tell(io, findingLines(findings, io)));
    return code;
  },
});
