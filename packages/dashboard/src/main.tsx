import { render } from 'preact'
import { App } from './app.tsx'
import { Server } from './server.ts'
import './style/main.css'

const root = document.querySelector('#app')
if (root) render(<App server={new Server(location.origin)} />, root)
