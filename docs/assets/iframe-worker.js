/* Search in pages that were opened from disk: browsers start no Worker there, so its script runs in a hidden frame. */
"use strict"

class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    this.url = String(url)
    this.frame = document.createElement("iframe")
    this.frame.hidden = true
    this.frame.title = "search"
    document.body.appendChild(this.frame)
    window.addEventListener("message", event => {
      if (event.source !== this.frame.contentWindow) return
      const answer = new MessageEvent("message", { data: event.data })
      this.dispatchEvent(answer)
      if (this.onmessage) this.onmessage(answer)
    })
    const page = this.frame.contentDocument
    page.open()
    page.write(`<!doctype html><html><body><script>
      postMessage = message => parent.postMessage(message, "*")
      importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve, reject) => {
        const script = document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        document.body.appendChild(script)
      })), Promise.resolve())
    <\/script><script src="${this.url}"><\/script></body></html>`)
    page.close()
    this.ready = new Promise(resolve => { this.frame.onload = resolve })
  }

  postMessage(message) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: message })))
  }

  terminate() {
    this.frame.remove()
  }
}

if (location.protocol === "file:") window.Worker = IFrameWorker
