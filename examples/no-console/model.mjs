// A scripted model that does the work of no-console.yaml: it reads the file it was given, writes it with the
// logger, and submits. See packages/rehearsal/README.md for what such a script can do.

const LEVELS = { log: 'info', warn: 'warn', error: 'error' };

export default {
  order: 'conversation',
  answers: [
    (request) => {
      const [, path = ''] = /Keep to these files if you can: (\S+)/.exec(request.task) ?? [];
      if (request.step === 1) return { calls: [{ name: 'read', args: { path } }] };
      if (request.step === 2) {
        const content = withLogger(path, plainText(request.results.at(-1)?.output ?? ''));
        return { text: 'There are console calls in it.', calls: [{ name: 'write', args: { path, content } }] };
      }
      return { calls: [{ name: 'submit_result', args: { summary: `${path} uses the logger.` } }] };
    },
  ],
};

/** Without the numbers of its lines. */
function plainText(shown) {
  const lines = shown.split('\n').map((line) => line.replace(/^\s*\d+\t/, ''));
  return `${lines.join('\n').trimEnd()}\n`;
}

function withLogger(path, text) {
  const up = '../'.repeat(path.split('/').length - 2) || './';
  const logged = text.replaceAll(/console\.(log|warn|error)\(/g, (_, level) => `log.${LEVELS[level]}(`);
  const [head, ...rest] = logged.split('\n\n');
  return [head, `import { log } from '${up}log.js';`, ...rest].join('\n\n');
}
