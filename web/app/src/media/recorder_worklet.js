// Hands the microphone's samples to the page as they come.
class Tap extends AudioWorkletProcessor {
  process([input]) {
    const samples = input?.[0];
    if (samples) this.port.postMessage(samples.slice());
    return true;
  }
}
registerProcessor('tap', Tap);
