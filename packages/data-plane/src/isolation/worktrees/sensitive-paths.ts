import type { FindingKind } from '@airlock/contract'

/** File systems of Apple ignore these in a name. */
const IGNORABLE = /[\u200C-\u200F\u202A-\u202E\u206A-\u206F\uFEFF]/gu

/** A name as the most forgiving file system reads it: no case, one spelling of accents, no stream and no dot at its end. */
export function foldName(name: string): string {
  const plain = name.replaceAll(IGNORABLE, '').normalize('NFC').toUpperCase().toLowerCase()
  return (plain.split(':')[0] ?? plain).replace(/[ .]{1,255}$/u, '') || plain
}

/** Names that mean something wherever they are. */
const NAMES: Readonly<Partial<Record<FindingKind, readonly RegExp[]>>> = {
  ci: [
    /^\.?(?:gitlab-ci|travis|drone|woodpecker|appveyor|bitbucket-pipelines|azure-pipelines[a-z0-9_-]{0,64}|cloudbuild)\.ya?ml$/,
    /^(?:jenkinsfile|codeowners|codecov\.yml|dependabot\.yml|renovate\.json5?)$/,
  ],
  hook: [/^(?:\.pre-commit-config\.ya?ml|\.?lefthook(?:-local)?\.ya?ml|\.lintstagedrc.{0,16})$/],
  git: [/^\.git(?:attributes|modules|config)$/],
  build: [
    /^(?:gnu)?makefile(?:\.am|\.in)?$/,
    /\.(?:sh|bash|zsh|fish|ps1|psm1|bat|cmd|mk|cmake|bzl|gemspec|gradle|gradle\.kts|csproj|props|targets|nix)$/,
    /^(?:cmakelists\.txt|configure(?:\.ac)?|meson\.build|build(?:\.bazel)?|workspace(?:\.bazel)?|module\.bazel|justfile|rakefile|gemfile|procfile|vagrantfile|gradlew)$/,
    /^(?:package\.json|binding\.gyp|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.c?js|pnpm-workspace\.yaml|deno\.jsonc?|bunfig\.toml)$/,
    /^(?:setup\.py|setup\.cfg|pyproject\.toml|conftest\.py|tox\.ini|noxfile\.py|sitecustomize\.py|pip\.conf|.{0,200}\.pth)$/,
    /^(?:cargo\.toml|build\.rs|go\.work|pom\.xml|build\.xml|composer\.json|mix\.exs|taskfile\.ya?ml|\.envrc|\.tool-versions|mise\.toml)$/,
  ],
  container: [
    /^(?:docker|container)file(?:\..{1,200})?$/,
    /\.(?:docker|container)file$/,
    /^(?:docker-)?compose(?:\.[a-z0-9_-]{1,64})?\.ya?ml$/,
    /^\.dockerignore$/,
  ],
  infra: [
    /\.(?:tf|tfvars|hcl|nomad|bicep)$/,
    /^(?:chart\.yaml|values(?:-[a-z0-9]{1,32})?\.yaml|kustomization\.ya?ml|serverless\.ya?ml|pulumi\.ya?ml|fly\.toml|vercel\.json|netlify\.toml|app\.yaml|ansible\.cfg)$/,
  ],
  agent: [
    /^(?:agents|claude|gemini|copilot-instructions)(?:\.local)?\.md$/,
    /^\.(?:mcp|aider).{0,64}$/,
    /^\.(?:cursorrules|windsurfrules|clinerules|exrc|vimrc|nvimrc|nvim\.lua)$/,
    /\.code-workspace$/,
  ],
}

/** Directories all of which mean something; as the names of a path, one after the other. */
const DIRECTORIES: readonly (readonly [FindingKind, readonly string[]])[] = [
  ['ci', ['.github', 'workflows']],
  ['ci', ['.github', 'actions']],
  ['ci', ['.gitea']],
  ['ci', ['.forgejo']],
  ['ci', ['.gitlab']],
  ['ci', ['.circleci']],
  ['ci', ['.buildkite']],
  ['hook', ['.husky']],
  ['hook', ['.githooks']],
  ['hook', ['hooks']],
  ['build', ['.cargo']],
  ['build', ['gradle', 'wrapper']],
  ['build', ['.yarn']],
  ['agent', ['.claude']],
  ['agent', ['.cursor']],
  ['agent', ['.codex']],
  ['agent', ['.gemini']],
  ['agent', ['.windsurf']],
  ['agent', ['.continue']],
  ['agent', ['.vscode']],
  ['agent', ['.idea']],
  ['agent', ['.zed']],
  ['agent', ['.devcontainer']],
  ['infra', ['.terraform']],
]

/** What a path means at any depth, in every spelling that some file system takes for it. */
export function sensitiveKinds(path: string): ReadonlySet<FindingKind> {
  const names = path.split('/').map(foldName)
  const kinds = new Set<FindingKind>()
  for (const [kind, directory] of DIRECTORIES) if (contains(names, directory)) kinds.add(kind)
  const last = names.at(-1) ?? ''
  for (const [kind, patterns] of Object.entries(NAMES))
    if (patterns.some((pattern) => pattern.test(last))) kinds.add(kind as FindingKind)
  return kinds
}

function contains(names: readonly string[], directory: readonly string[]): boolean {
  return names.some((_, at) => directory.every((name, offset) => names[at + offset] === name))
}

/** Why a name should be looked at by a person; undefined for a plain one. */
export function strangeName(path: string): string | undefined {
  if (/\p{Cc}/u.test(path)) return 'has a control character'
  if (/\p{Bidi_Control}/u.test(path)) return 'has a character that turns the direction of text'
  if (path.replaceAll(IGNORABLE, '') !== path || /[\u200B\u2060\u00AD]/u.test(path)) return 'has an invisible character'
  if (path.includes('\uFFFD')) return 'is not UTF-8'
  if (path.includes('\\')) return 'has a backslash'
  if (path.split('/').some((name) => /~\d{1,6}(?:\.[^.]{0,3})?$/u.test(name)))
    return 'looks like a short name of Windows'
  if (path.split('/').some((name) => /[ .]$|:/u.test(name))) return 'is another file on Windows'
  return undefined
}
