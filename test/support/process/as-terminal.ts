// Makes the streams of this process look like a terminal of 100 x 40, for programs that a test kills.

const size = { isTTY: { value: true }, columns: { value: 100 }, rows: { value: 40 } };
Object.defineProperties(process.stdin, { isTTY: { value: true }, setRawMode: { value: () => process.stdin } });
Object.defineProperties(process.stdout, size);
Object.defineProperties(process.stderr, size);
