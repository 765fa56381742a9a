/** The style of /docs. Its hash is in the page's content security policy. */
export const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 15%, transparent); --soft: color-mix(in srgb, currentColor 6%, transparent) }
* { box-sizing: border-box }
body { margin: 0; display: grid; grid-template-columns: 19rem minmax(0, 1fr); font: 16px/1.55 system-ui, sans-serif }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); font-size: .8rem }
nav ul { list-style: none; margin: 0; padding: 0 } nav h2 { font-size: .7rem; text-transform: uppercase; letter-spacing: .08em; opacity: .6; margin: 1.2rem 0 .3rem }
nav a { display: block; padding: .15rem .4rem; border-radius: 4px; color: inherit; text-decoration: none; white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
nav a:hover { background: var(--soft) } .brand { font-weight: 700; font-size: 1.1rem; margin: 0 0 .5rem .4rem }
main { padding: 2rem 3rem 6rem; max-width: 60rem } main > h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) }
section { margin: 2.2rem 0; scroll-margin-top: 1rem } section:target h3 { background: var(--soft) }
h3 { font-size: 1rem; font-weight: 500; margin: 0; padding: .3rem .4rem; border-radius: 4px } h4 { margin: 1rem 0 .3rem; font-size: .8rem; opacity: .7 }
b { font: 700 .7rem ui-monospace, monospace; display: inline-block; min-width: 3.2rem } .GET { color: #2b7de9 } .POST { color: #1f9d55 } .PUT { color: #c47f00 } .DELETE { color: #d64545 }
code, pre { font-family: ui-monospace, monospace; font-size: .85em } pre { background: var(--soft); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .85rem } td { border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; vertical-align: top; overflow-wrap: anywhere }
td:first-child { white-space: nowrap } i { opacity: .6; font-size: .75rem } .facts { font-size: .85rem; opacity: .75 } summary { cursor: pointer; font-size: .85rem; opacity: .8 }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto } main { padding: 1rem } }
`
