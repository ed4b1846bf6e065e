// Speaks many lines in one process, for a machine where starting one for each is slow. Reads
// "voice<TAB>speed<TAB>pitch<TAB>text" lines, writes for each the number of samples (int32) and the samples (int16).
//   cc -O2 speak.c -lespeak-ng -o speak;  ./speak DIRECTORY_OF_ESPEAK_NG_DATA
#include <espeak-ng/speak_lib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int16_t* samples;
static int32_t count, room;

static int heard(short* wave, int length, espeak_EVENT* events) {
  (void)events;
  if (!wave || length <= 0) return 0;
  if (count + length > room) {
    room = 2 * (count + length);
    samples = realloc(samples, (size_t)room * sizeof *samples);
    if (!samples) exit(1);
  }
  memcpy(samples + count, wave, (size_t)length * sizeof *samples);
  count += length;
  return 0;
}

int main(int argc, char** argv) {
  if (espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, argc > 1 ? argv[1] : NULL, 0) != 22050) return 2;
  espeak_SetSynthCallback(heard);
  char line[1024];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    const char* voice = strtok(line, "\t");
    const char* speed = strtok(NULL, "\t");
    const char* pitch = strtok(NULL, "\t");
    const char* text = strtok(NULL, "\t");
    count = 0;
    if (text && espeak_SetVoiceByName(voice) == EE_OK) {
      espeak_SetParameter(espeakRATE, atoi(speed), 0);
      espeak_SetParameter(espeakPITCH, atoi(pitch), 0);
      espeak_Synth(text, strlen(text) + 1, 0, POS_CHARACTER, 0, espeakCHARS_UTF8 | espeakENDPAUSE, NULL, NULL);
      espeak_Synchronize();
    }
    fwrite(&count, sizeof count, 1, stdout);
    fwrite(samples, sizeof *samples, (size_t)count, stdout);
    fflush(stdout);
  }
  return 0;
}
