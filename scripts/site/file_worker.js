// The search of pages that are opened from a disk. Browsers start no worker there: a hidden frame
// with the worker's script stands in for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = this.inside.document.createElement("script")
      script.src = url
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve))
      this.inside.document.head.appendChild(script)
    }
    async postMessage(data) {
      await this.ready
      this.inside.dispatchEvent(new MessageEvent("message", { data }))
    }
    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
