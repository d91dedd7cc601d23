// Search from disk: a browser starts no Worker from a file: address, so the worker's script runs in a hidden frame.
if (location.protocol === "file:") {
  const message = (data) => new MessageEvent("message", { data: structuredClone(data) });

  window.Worker = class {
    constructor(url) {
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      this.scope = frame.contentWindow;
      this.scope.document.open();
      this.scope.document.write("<!doctype html><body></body>");
      this.scope.document.close();
      this.scope.postMessage = (data) => this.onmessage(message(data));
      const script = this.scope.document.createElement("script");
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      script.src = url;
      this.scope.document.body.append(script);
    }

    postMessage(data) {
      const copy = message(data); // of what the data are now
      this.loaded.then(() => this.scope.dispatchEvent(copy));
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
}
