// Hostile commands that make git, or another configurable tool, run or write something.

import { type Attack, family } from './attack.ts';

export const GIT_ATTACKS: readonly Attack[] = [
  ...family('git on a prepared repository', {
    'a common folder brings a textconv': 'git -C trap show HEAD',
    'GIT_DIR names a prepared repository': 'GIT_DIR=trap git log -p -1',
    'an option names a prepared repository': 'git --git-dir=trap show --textconv HEAD',
    'GIT_COMMON_DIR names a prepared folder': 'GIT_COMMON_DIR=$PWD/trapcommon git show HEAD',
    'GIT_CONFIG_GLOBAL names a prepared config':
      "printf '[alias]\\n\\tgo = !touch @CAN@/git-global\\n' > conf; GIT_CONFIG_GLOBAL=conf git go",
  }),
  ...family('git with options', {
    'an fsmonitor is given': "git -c core.fsmonitor='touch @CAN@/git-1; false' status",
    'an alias is given': "git -c alias.go='!touch @CAN@/git-2' go",
    'an alias comes from a variable': "A='!touch @CAN@/git-3' git --config-env=alias.go=A go",
    'counted variables give a config':
      "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.go GIT_CONFIG_VALUE_0='!touch @CAN@/git-4' git go",
    'an external diff is given': "echo z >> numbers; GIT_EXTERNAL_DIFF='touch @CAN@/git-5 #' git diff",
    'an ssh command is given': "GIT_SSH_COMMAND='touch @CAN@/git-6;' git ls-remote ssh://nowhere/x",
    'an upload-pack is given': "git ls-remote --upload-pack='touch @CAN@/git-7;' .",
    'a pager opens files': "git grep -O'touch @CAN@/git-8;' one",
    'a diff is written to a file': 'git diff --output=@CAN@/git-9 --no-index /dev/null numbers',
    'a diff shows a file outside': 'git diff --no-index /dev/null @OUT@/secret.txt',
    'a blame shows a file outside': 'git blame --contents @OUT@/secret.txt numbers',
    'a search leaves the repository': 'cd @OUT@ && git grep --no-index -h MARK',
    'an archive is written outside': 'git archive -o @CAN@/git-10.tar HEAD',
    'a bundle is written outside': 'git bundle create @CAN@/git-11 HEAD',
    'patches are written outside': 'git format-patch -o @CAN@ -1 --root',
    'a clone is made outside': 'git clone -q . @CAN@/git-12',
    'a worktree is made outside': 'git worktree add -q --detach @CAN@/git-13',
    'an ext transport runs a command': "git -c protocol.ext.allow=always ls-remote 'ext::touch @CAN@/git-14'",
    'a submodule path leads outside': 'git -c protocol.file.allow=always clone -q "$PWD" @CAN@/git-15',
  }),
  ...family('git config that stays', {
    'a textconv is configured':
      "git config diff.x.textconv 'touch @CAN@/cfg-1; cat'; echo '* diff=x' > .gitattributes; echo z >> numbers; git diff",
    'a filter is configured':
      "git config filter.x.clean 'touch @CAN@/cfg-2; cat'; echo '* filter=x' > .gitattributes; echo z > new; git add -A",
    'an fsmonitor is configured': "git config core.fsmonitor 'touch @CAN@/cfg-3; false'; git status",
    'a hooks folder is configured': 'git config core.hooksPath hooks; git commit -q --allow-empty -m x',
    'a hook is written':
      "printf '#!/bin/sh\\ntouch @CAN@/cfg-4\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; git commit -q --allow-empty -m x",
    'a merge driver is configured':
      "git config merge.x.driver 'touch @CAN@/cfg-5'; git config alias.st '!touch @CAN@/cfg-5'; git st",
    'the config is replaced by renaming':
      "cp .git/config c; printf '[alias]\\n\\tgo = !touch @CAN@/cfg-6\\n' >> c; mv -f c .git/config; git go",
    'the folder of git is replaced': "mv .git old; cp -r old .git; git config alias.go '!touch @CAN@/cfg-7'; git go",
    'git moves its own folder':
      "mkdir -p other; git init -q --separate-git-dir=other/g . && git config alias.go '!touch @CAN@/cfg-8' && git go",
    'a bisect runs a command': 'git bisect start -q HEAD HEAD~1; git bisect run touch @CAN@/cfg-9',
  }),
  ...family(
    'files that run later',
    {
      'an .envrc is written': 'echo "touch x" > .envrc; test -s .envrc && touch @CAN@/later-1',
      'a husky hook is written': 'mkdir -p .husky; echo x > .husky/pre-commit',
      'a task of the editor is written': 'mkdir -p .vscode; echo "{}" > .vscode/tasks.json',
      'the folder of the editor is exchanged': 'mv .vscode away; mkdir .vscode; echo evil > .vscode/tasks.json',
      'an MCP server is added': 'echo "{}" > .mcp.json',
      'a config of drover is written': 'mkdir -p .drover; echo "gate: x" > .drover/config.yaml',
      'a hook of an agent is written': 'mkdir -p .claude; echo "{}" > .claude/settings.json',
      'the file system is remounted': 'mount -o remount,rw .git; echo x > .git/x',
      'a placeholder is removed': 'rmdir .envrc; rm -rf .envrc; echo x > .envrc',
      'a link takes the place of a sealed file': 'ln -sfn @OUT@ .envrc; ln -sf run.sh .mcp.json',
      'a hard link to a sealed file is written': 'ln .git/config twin && echo "[x]" >> twin',
    },
    false,
  ),
];
