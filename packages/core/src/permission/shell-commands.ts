// The commands that do no harm, and with which options. A list to read through, not code.
//
// Options are those that neither write nor start anything; the rest of a command's options, and
// abbreviations of them, are asked about. How the lists are written: see shell-options.ts. A `loose`
// command has no harmful option at all, so its arguments may be variables or come from xargs.
//
// Left out on purpose: what pages (less, man), what shows other people's processes or the environment
// (ps, env), package managers (the project's own configuration can make even --version run something),
// and interpreters.

export type CommandSpec = {
  readonly options?: string;
  readonly loose?: true;
  /** `pattern`: the first is text (unless an option gave it), the others paths. `one`: at most one path. */
  readonly operands: 'paths' | 'text' | 'pattern' | 'one' | 'none';
  /** Options that stand for the pattern. */
  readonly instead?: readonly string[];
  /** One of these has to be given. */
  readonly needs?: readonly string[];
};

const text: CommandSpec = { loose: true, operands: 'text' };
const reader: CommandSpec = { loose: true, operands: 'paths' };
const numbered: CommandSpec = { loose: true, operands: 'paths', options: '-# n= c= lines= bytes=' };

const grep: CommandSpec = {
  loose: true,
  operands: 'pattern',
  instead: ['e', 'f', 'regexp', 'file'],
  options: `-# -abchHiLlnoqrRsTUuvVwxyzEFGPZ0 A= B= C= m= e= f: D= d= regexp= file: include= exclude= exclude-dir= exclude-from:
    color? colour? max-count= context= after-context= before-context= label= binary-files= directories= devices= group-separator=`,
};

const checksum: CommandSpec = { loose: true, operands: 'paths' };

export const commands: Readonly<Record<string, CommandSpec>> = {
  // what takes no file
  echo: text,
  true: text,
  false: text,
  ':': text,
  pwd: text,
  exit: text,
  return: text,
  break: text,
  continue: text,
  seq: text,
  sleep: text,
  expr: text,
  basename: { ...text, options: '-az s= suffix= multiple zero' },
  dirname: text,
  type: text,
  which: text,
  uname: text,
  whoami: text,
  id: text,
  groups: text,
  arch: { operands: 'none' }, // on some systems it runs what it is given
  nproc: text,
  uptime: text,
  free: text,
  tty: text,
  locale: text,
  cal: text,
  numfmt: text,
  hostname: { operands: 'none', options: '-fsIiAd' },
  tr: { operands: 'text', options: '-cCdst complement delete squeeze-repeats truncate-set1' },

  // what reads
  cat: reader,
  tac: reader,
  rev: reader,
  nl: { ...reader, options: 'b= d= f= h= i= l= n= s= v= w= body-numbering= number-separator= number-format=' },
  head: numbered,
  tail: { ...numbered, options: `${numbered.options} s= pid= sleep-interval= follow? retry` },
  wc: { ...reader, options: 'files0-from: total=' },
  ls: {
    ...reader,
    options: `-# I= w= T= ignore= hide= color? sort= time= time-style= format= width= block-size= indicator-style=
      quoting-style= hyperlink? tabsize=`,
  },
  dir: reader,
  stat: { ...reader, options: '-fLtx c= format= printf= cached=' },
  du: {
    ...reader,
    options: 'd= t= B= X: max-depth= threshold= exclude= exclude-from: files0-from: block-size= time? time-style=',
  },
  df: { ...reader, options: 't= x= B= type= exclude-type= output? block-size=' },
  readlink: reader,
  realpath: { ...reader, options: 'relative-to: relative-base:' },
  file: { operands: 'paths', options: '-bihkLNrv brief mime mime-type mime-encoding dereference no-dereference raw' },
  strings: { ...reader, options: 'n= t= e= bytes= radix= encoding=' },
  od: { ...reader, options: 'A= j= N= S= t= w? address-radix= format= read-bytes= skip-bytes= width?' },
  hexdump: { operands: 'paths', options: '-bcCdovx n= s= e= length= skip= format= canonical' },
  xxd: { operands: 'one', options: '-abeEipruC c= g= l= s= o= n=' },
  base64: { operands: 'one', options: '-di w= wrap= decode ignore-garbage' },
  cksum: checksum,
  sum: checksum,
  md5sum: checksum,
  sha1sum: checksum,
  sha256sum: checksum,
  sha512sum: checksum,
  shasum: { ...checksum, options: 'a= algorithm=' },
  cmp: { operands: 'paths', options: '-bls n= i= bytes= ignore-initial= print-bytes verbose silent quiet' },
  diff: {
    operands: 'paths',
    options: `-qrsuyBbwiEZaNcdent U= C= W= I= L= x= X: brief recursive report-identical-files unified? context? side-by-side
      suppress-common-lines ignore-all-space ignore-space-change ignore-blank-lines ignore-case ignore-trailing-space
      ignore-matching-lines= exclude= exclude-from: label= width= color? new-file text minimal strip-trailing-cr
      no-dereference normal show-c-function left-column`,
  },
  comm: { ...reader, options: '-123iz output-delimiter= total check-order nocheck-order' },
  join: { ...reader, options: '-iz a= e= j= o= t= v= 1= 2= header check-order nocheck-order' },
  paste: { operands: 'paths', options: '-sz d= delimiters= serial zero-terminated' },
  cut: {
    operands: 'paths',
    options:
      '-nsz b= c= d= f= bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated',
  },
  sort: {
    operands: 'paths',
    options: `-bdfghiMnrRsuVcCz k= t= key= field-separator= ignore-leading-blanks dictionary-order ignore-case
      general-numeric-sort human-numeric-sort month-sort numeric-sort random-sort reverse version-sort sort= check? stable
      unique zero-terminated parallel=`,
  },
  uniq: {
    operands: 'one',
    options: `-cdDuiz f= s= w= count repeated all-repeated? group? unique ignore-case skip-fields= skip-chars= check-chars=
      zero-terminated`,
  },
  fold: { ...reader, options: '-bs w= width= bytes spaces' },
  fmt: { ...reader, options: '-cstu w= g= p= width= goal= prefix=' },
  expand: { ...reader, options: '-i t= tabs= initial' },
  unexpand: { ...reader, options: '-a t= tabs= all first-only' },
  column: {
    operands: 'paths',
    options: `-enxtJ c= s= o= N= R= H= W= O= table separator= output-separator= table-columns= table-right= output-width=
      json table-name= table-noheadings fillrows`,
  },
  iconv: { operands: 'paths', options: '-cls f= t= from-code= to-code=' },
  shuf: { operands: 'paths', options: '-erz n= i= head-count= input-range= echo repeat zero-terminated' },
  tree: {
    operands: 'paths',
    options: `-adfisupghDFrtUCnJXQqNxvcAS L= P= I= noreport dirsfirst filesfirst gitignore prune matchdirs filelimit= charset=
      sort= timefmt= du si inodes device ignore-case metafirst`,
  },
  zipinfo: { operands: 'one', options: '-12smlhtvz' },
  unzip: { operands: 'one', options: '-lvqZ1', needs: ['l', 'v', 'Z'] },
  tar: { operands: 'text', options: '-tvzjJ f: list verbose file: gzip bzip2 xz', needs: ['t', 'list'] },
  bat: {
    operands: 'paths',
    options: `-pAn r= l= style= paging= color= plain number line-range= language= theme= decorations= show-all wrap=
      tabs= terminal-width= file-name= highlight-line= H= m= map-syntax=`,
  },

  // what searches
  grep,
  egrep: grep,
  fgrep: grep,
  rg: {
    operands: 'pattern',
    instead: ['e', 'f', 'regexp', 'file', 'files', 'type-list'],
    options: `-0abcHIilNnopPqsSuUvVwxF. A= B= C= E= M= T= d= e= f: g= j= m= r= t= after-context= before-context= context= auto-hybrid-regex
      binary block-buffered byte-offset case-sensitive color= colors= column context-separator= count count-matches crlf debug
      no-pcre2-unicode encoding= engine= field-context-separator= field-match-separator= file: files files-with-matches
      files-without-match fixed-strings glob= glob-case-insensitive heading help hidden iglob= ignore-case ignore-file:
      ignore-file-case-insensitive include-zero invert-match json line-buffered line-number line-regexp max-columns=
      max-columns-preview max-count= max-depth= maxdepth= max-filesize= mmap multiline multiline-dotall no-binary no-column
      no-config no-filename no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global
      no-ignore-messages no-ignore-parent no-ignore-vcs no-line-number no-messages no-mmap no-multiline no-require-git
      no-unicode null null-data one-file-system only-matching passthru path-separator= pcre2 pretty quiet regexp=
      regex-size-limit= replace= require-git smart-case sort= sortr= stats stop-on-nonmatch text threads= trim type=
      type-add= type-clear= type-list type-not= unrestricted version vimgrep with-filename word-regexp`,
  },
  fd: {
    operands: 'pattern',
    options: `-HIusipaltgF01 e= t= E= d= S= extension= type= exclude= max-depth= min-depth= exact-depth= size= hidden no-ignore
      no-ignore-vcs case-sensitive ignore-case glob fixed-strings absolute-path full-path list-details print0 max-results=
      changed-within= changed-before= color= prune quiet`,
  },

  // what picks out
  jq: {
    operands: 'pattern',
    options: `-rcnesSCMjaR raw-output compact-output null-input exit-status slurp sort-keys color-output monochrome-output
      join-output ascii-output raw-input tab indent= arg== argjson== stream seq unbuffered version`,
  },
  yq: {
    operands: 'pattern',
    options: '-rPCMNcjey o= p= output-format= input-format= prettyPrint no-colors no-doc version',
  },
};

/** Programs that are harmless when asked for their version in exactly one of these ways, and not otherwise. */
export const versions: Readonly<Record<string, readonly string[]>> = {
  node: ['--version', '-v'],
  python: ['--version', '-V'],
  python3: ['--version', '-V'],
  bash: ['--version'],
  gcc: ['--version'],
  make: ['--version'],
};

/** Variables that may be set for a command: to these values, or to any plain one. */
export const assignments: Readonly<Record<string, readonly string[] | 'plain'>> = {
  LANG: 'plain',
  LC_ALL: 'plain',
  LC_COLLATE: 'plain',
  LC_CTYPE: 'plain',
  LC_NUMERIC: 'plain',
  LC_TIME: 'plain',
  TZ: 'plain',
  NO_COLOR: 'plain',
  FORCE_COLOR: 'plain',
  CLICOLOR: 'plain',
  CLICOLOR_FORCE: 'plain',
  COLUMNS: 'plain',
  LINES: 'plain',
  CI: 'plain',
  NODE_ENV: 'plain',
  TERM: ['dumb', 'xterm', 'xterm-256color'],
  PAGER: ['cat'],
  GIT_PAGER: ['cat'],
  GIT_OPTIONAL_LOCKS: ['0'],
  GIT_TERMINAL_PROMPT: ['0'],
};
