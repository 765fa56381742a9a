// Who may import whom. Anything absent is forbidden.
// TypeScript 7 has no parser for others, so swc parses: without it no .ts file would be read, hence the hard `require`.
const { Visitor } = require('@swc/core/Visitor.js')

// Its visitor stops at `using`, which for imports is as good as `const`.
// oxlint-disable-next-line typescript/unbound-method -- called with `this` below
const { visitStatement } = Visitor.prototype
Visitor.prototype.visitStatement = function visit(statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement)
  return this.visitVariableDeclaration({ ...statement, type: 'VariableDeclaration', declarations: statement.decls })
}

/** Zone → the zones it may import, the npm packages it may import, and why. */
const PACKAGES = {
  std: { zones: [], npm: [], why: 'knows no domain words' },
  contract: { zones: ['std'], npm: ['zod'], why: 'is the nouns alone: everybody imports it' },
  wire: { zones: ['contract', 'std'], npm: ['zod'], why: 'joins the processes of a host: it knows none of them' },
  audit: { zones: ['contract', 'std', 'wire'], npm: ['zod'], why: 'is evidence: it must verify without the rest' },
  policy: { zones: ['contract', 'std'], npm: [], why: 'is decisions alone: it reads nothing and does nothing' },
  'control-plane': {
    zones: ['audit', 'contract', 'mcp', 'policy', 'std', 'wire'],
    npm: ['fastify', 'jose', 'kysely', 'pg', 'zod'],
    why: 'is one process: it reaches others by sockets',
  },
  'data-plane': {
    zones: ['audit', 'contract', 'std', 'wire'],
    npm: ['zod'],
    why: 'has host privileges: it loads little',
  },
  doors: { zones: ['contract', 'std', 'wire'], npm: ['zod'], why: 'meets hostile bytes and has no host privileges' },
  keys: {
    zones: ['contract', 'std', 'wire'],
    npm: ['undici', 'zod'],
    why: 'holds the keys of providers: it loads little, and knows no other process',
  },
  recorder: { zones: ['audit', 'contract', 'std', 'wire'], npm: ['zod'], why: 'is the one writer of evidence' },
  supervisor: { zones: ['contract', 'std'], npm: ['smol-toml'], why: 'starts processes, and loads none of them' },
  guest: { zones: ['contract', 'std'], npm: [], why: 'runs among hostile code, as one file without dependencies' },
  sdk: { zones: ['contract', 'std'], npm: ['zod'], why: "is the customer's program" },
  dashboard: { zones: ['sdk'], npm: ['preact'], why: 'runs in browsers: it speaks through the SDK' },
  mcp: {
    zones: ['contract', 'std'],
    npm: ['zod', '@modelcontextprotocol/server'],
    why: 'is the tools alone: how a route is reached is told to it',
  },
  cli: {
    zones: ['sdk', 'contract', 'mcp', 'std', 'audit'],
    npm: ['commander'],
    why: 'speaks through the SDK; of audit it takes the offline verifier',
  },
}

/** What callers ask the control plane for, a folder each; `app` puts them together. */
const SUBJECTS = [
  'agents',
  'app',
  'approvals',
  'commands',
  'doors',
  'evidence',
  'kills',
  'nodes',
  'policies',
  'sandboxes',
  'sessions',
  'spend',
  'sweep',
  'templates',
  'tenants',
  'webhooks',
]

/** Folders of a zone that is built in steps → the folders that each may import. */
const FOLDERS = {
  'control-plane': {
    api: ['identity', 'monitor', ...SUBJECTS],
    identity: ['store'],
    // A subject is a room: all that is its own is in it. What they need of each other they may import.
    ...Object.fromEntries(
      SUBJECTS.map((room) => [room, [...SUBJECTS.filter((one) => one !== room), 'identity', 'store']]),
    ),
    monitor: [...SUBJECTS, 'store'],
    store: [],
  },
  'data-plane': {
    server: ['sandboxes'],
    sandboxes: ['isolation', 'session', 'vault'],
    isolation: [],
    session: ['vault'],
    vault: [],
  },
  // A door is a folder that knows no other. All of them share how bytes from inside are heard, and how the control plane is asked.
  doors: {
    control: ['link', 'listener'],
    egress: ['link', 'listener'],
    link: [],
    listener: [],
  },
  guest: {
    transport: ['session'],
    // Speaks for programs inside at the doors: what it does must not reach what the host asks of the guest, nor the other way round.
    doors: [],
    session: ['process', 'files'],
    files: ['process'],
    kernels: ['session'],
    process: [],
  },
}

/** Dangerous modules → the only places that may import them, and why. */
const RESTRICTED = [
  {
    name: 'child-process',
    modules: ['child_process'],
    places: [
      'packages/data-plane/src/isolation/',
      'packages/guest/src/process/',
      'packages/guest/src/files/',
      'packages/supervisor/',
      'packages/cli/bin/',
    ],
    why: 'Starting programs is what isolation, the guest and the supervisor are for; the bin may start a newer Node.',
  },
  {
    name: 'sockets',
    modules: ['net', 'http', 'https', 'http2', 'tls', 'dgram'],
    places: [
      'packages/wire/src/',
      'packages/audit/src/recorder-',
      'packages/recorder/src/server',
      'packages/data-plane/src/server/',
      'packages/data-plane/src/session/',
      'packages/data-plane/src/isolation/throw-away.ts',
      'packages/supervisor/src/port.ts',
      'packages/control-plane/src/api/',
      'packages/control-plane/src/config.ts',
      'packages/control-plane/src/webhooks/',
      'packages/keys/src/',
      'packages/doors/src/egress/',
      'packages/doors/src/keys/',
      'packages/doors/src/listener/',
      'packages/doors/src/server.ts',
      'packages/guest/src/transport/',
      'packages/guest/src/doors/',
      'packages/guest/src/tool/',
      'packages/guest/src/process/',
      'packages/guest/src/kernels/node/control.ts',
      'packages/sdk/',
    ],
    why: 'Bytes from elsewhere enter at edges that parse them.',
  },
  {
    name: 'fastify',
    modules: ['fastify'],
    places: ['packages/control-plane/src/api/'],
    why: 'The core never sees a request.',
  },
  {
    name: 'kysely',
    modules: ['kysely'],
    places: ['packages/control-plane/src/store/', 'packages/control-plane/src/compose.ts'],
    why: 'Queries live in the store.',
  },
  {
    name: 'jose',
    modules: ['jose'],
    places: ['packages/control-plane/src/identity/'],
    why: 'Tokens are verified where callers become principals.',
  },
  {
    name: 'pg',
    modules: ['pg'],
    places: ['packages/control-plane/src/store/engine/postgres.ts'],
    why: 'One file knows that the store is PostgreSQL.',
  },
]

/** Single files that may do more than their zone. */
const EXCEPTIONS = {
  'packages/cli/src/verbs/serve.ts': { zones: ['supervisor'], why: '`airlock serve` is the supervisor' },
  'packages/cli/src/verbs/uninstall.ts': { zones: ['supervisor'], why: 'what starts the supervisor put it into PATH' },
  'packages/cli/src/verbs/service-unit.ts': { zones: ['supervisor'], why: 'the units start the supervisor' },
  'packages/cli/src/verbs/doctor.ts': { zones: ['data-plane'], why: '`airlock doctor` runs its checks' },
}

/** Core modules without effects on the world. `std/child.ts` and `std/node-clock.ts` alone may have some. */
const PURE = ['assert', 'buffer', 'crypto', 'events', 'string_decoder', 'timers/promises', 'util']

const TESTS = '(?:[.]test[.]ts$|/fixtures/|/conformance[.]ts$|/testing/)'
const oneOf = (names) => `(?:${names.map((name) => name.replaceAll('.', '[.]')).join('|')})`

const zoneRules = Object.entries(PACKAGES).flatMap(([zone, { zones, npm, why }]) => {
  const exceptions = Object.keys(EXCEPTIONS).filter((file) => file.startsWith(`packages/${zone}/`))
  const from = { path: `^packages/${zone}/src/`, pathNot: [TESTS, ...exceptions.map((file) => `^${oneOf([file])}$`)] }
  return [
    {
      name: `${zone}-zone`,
      comment: `${zone} ${why}.`,
      severity: 'error',
      from,
      to: { path: '^(?:packages|test|scripts)/', pathNot: `^packages/${oneOf([zone, ...zones])}/` },
    },
    {
      name: `${zone}-npm`,
      comment: `${zone} ${why}.`,
      severity: 'error',
      from,
      to: { path: 'node_modules/', pathNot: `node_modules/${oneOf([...npm, '@airlock'])}/` },
    },
  ]
})

const exceptionRules = Object.entries(EXCEPTIONS).map(([file, { zones, why }]) => ({
  name: `exception-${file.split('/').at(-1)}`,
  comment: `${why}; otherwise it is of its zone.`,
  severity: 'error',
  from: { path: `^${oneOf([file])}$` },
  to: { path: '^packages/', pathNot: `^packages/${oneOf(['cli', ...PACKAGES.cli.zones, ...zones])}/` },
}))

const folderRules = Object.entries(FOLDERS).flatMap(([zone, folders]) =>
  Object.entries(folders).map(([folder, allowed]) => ({
    name: `${zone}-${folder}`,
    comment: `Folders of ${zone} are steps of the path: ${folder} → ${allowed.join(', ') || 'none of them'}.`,
    severity: 'error',
    from: { path: `^packages/${zone}/src/${folder}/`, pathNot: TESTS },
    to: {
      path: `^packages/${zone}/src/${oneOf(Object.keys(folders))}/`,
      pathNot: `^packages/${zone}/src/${oneOf([folder, ...allowed])}/`,
    },
  })),
)

const restrictedRules = RESTRICTED.map(({ name, modules, places, why }) => ({
  name: `only-there-${name}`,
  comment: why,
  severity: 'error',
  from: { path: '^packages/', pathNot: [TESTS, ...places.map((place) => `^${oneOf([place])}`)] },
  to: { path: `(?:^(?:node:)?|node_modules/)${oneOf(modules)}(?:$|/)`, dependencyTypes: ['core', 'npm'] },
}))

module.exports = {
  forbidden: [
    ...zoneRules,
    ...exceptionRules,
    ...folderRules,
    ...restrictedRules,
    {
      name: 'node-behind-port',
      comment:
        'The control plane meets a node by `DataPlane` and `Doors` in nodes/: only compose.ts names what is behind them.',
      severity: 'error',
      from: {
        path: '^packages/control-plane/src/',
        pathNot: [TESTS, '^packages/control-plane/src/(?:compose|nodes/data-plane-client)[.]ts$'],
      },
      to: { path: '^packages/control-plane/src/(?:nodes/data-plane-(?:client|images)|doors/doors-client)[.]ts$' },
    },
    {
      name: 'guest-protocol-alone',
      comment: 'The guest is one small file: of contract it takes the frames, not the schemas with zod.',
      severity: 'error',
      from: { path: '^packages/guest/src/', pathNot: TESTS },
      to: { path: '^packages/contract/src/(?!guest/)' },
    },
    {
      name: 'contract-guest-alone',
      comment: 'What the guest imports must not bring the rest of contract with it.',
      severity: 'error',
      from: { path: '^packages/contract/src/guest/', pathNot: TESTS },
      to: { path: '(?:^packages/(?!contract/src/guest/|std/)|node_modules/(?!@airlock/))' },
    },
    {
      name: 'sdk-core-anywhere',
      comment: 'Only `sdk/src/node` needs Node: the rest runs in browsers.',
      severity: 'error',
      from: { path: '^packages/(?:sdk/src/(?!node/|index[.]ts|internal[.]ts)|dashboard/src/)', pathNot: TESTS },
      to: { path: '^packages/sdk/src/(?:node/|index[.]ts|internal[.]ts)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'browser-without-node',
      comment: 'A browser has no modules of Node.',
      severity: 'error',
      from: { path: '^packages/(?:sdk/src/(?!node/)|dashboard/src/)', pathNot: TESTS },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'mcp-in-api',
      comment: 'Of the server only its edge speaks protocols.',
      severity: 'error',
      from: { path: '^packages/control-plane/src/(?!api/)', pathNot: TESTS },
      to: { path: '^packages/mcp/' },
    },
    {
      name: 'pure-zones',
      comment:
        'std and contract have no effects; std/child is the child of a supervisor, std/node-clock what its processes share, std/take-file what arms them in tests.',
      severity: 'error',
      from: {
        path: '^packages/(?:std|contract)/src/',
        pathNot: [TESTS, '^packages/std/src/(?:child|node-clock|take-file)[.]ts$'],
      },
      to: { dependencyTypes: ['core'], pathNot: `^(?:node:)?${oneOf(PURE)}$` },
    },
    {
      name: 'declared',
      comment: 'A package declares what it imports.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: TESTS },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'resolved',
      comment: 'Every import leads somewhere.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-cycles',
      comment: 'A cycle has no first file to read.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^packages/[^/]+/dist/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
}
