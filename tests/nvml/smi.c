/* A double of nvidia-smi on the NVML double: what it prints, where, and the codes it exits with.
 *
 *   -L | (no option: a short table) | -q -x | --version
 *   --query-gpu=FIELDS --format=csv[,noheader][,nounits] [-i N] [-l S | -lms MS]
 *   --query-compute-apps=FIELDS --format=…
 * Exit codes: 2 bad field, 6 no device, 9 no driver, 15 lost card asked for by -i, 18 mismatch.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { u32 version; u64 total, reserved, free, used; } Memory;
typedef struct { char legacy[16]; u32 domain, bus, device, id, subsystem; char full[32]; } Pci;
typedef struct { u32 pid; u64 bytes; } Proc;

const char *nvmlErrorString(int);
int nvmlInit_v2(void), nvmlSystemGetDriverVersion(char *, u32), nvmlSystemGetNVMLVersion(char *, u32);
int nvmlSystemGetCudaDriverVersion(int *), nvmlDeviceGetCount_v2(u32 *);
int nvmlDeviceGetHandleByIndex_v2(u32, void **), nvmlDeviceGetName(void *, char *, u32);
int nvmlDeviceGetUUID(void *, char *, u32), nvmlDeviceGetSerial(void *, char *, u32);
int nvmlDeviceGetPciInfo_v3(void *, Pci *), nvmlDeviceGetUtilizationRates(void *, u32 *);
int nvmlDeviceGetMemoryInfo_v2(void *, Memory *), nvmlDeviceGetTemperature(void *, u32, u32 *);
int nvmlDeviceGetPowerUsage(void *, u32 *), nvmlDeviceGetEnforcedPowerLimit(void *, u32 *);
int nvmlDeviceGetFanSpeed(void *, u32 *), nvmlDeviceGetClockInfo(void *, u32, u32 *);
int nvmlDeviceGetMaxClockInfo(void *, u32, u32 *), nvmlDeviceGetCurrentClocksThrottleReasons(void *, u64 *);
int nvmlDeviceGetTotalEccErrors(void *, u32, u32, u64 *), nvmlDeviceGetCurrPcieLinkGeneration(void *, u32 *);
int nvmlDeviceGetCurrPcieLinkWidth(void *, u32 *), nvmlDeviceGetPersistenceMode(void *, u32 *);
int nvmlDeviceGetMigMode(void *, u32 *, u32 *), nvmlDeviceGetPerformanceState(void *, u32 *);
int nvmlDeviceGetComputeMode(void *, u32 *), nvmlSystemGetProcessName(u32, char *, u32);
int nvmlDeviceGetComputeRunningProcesses(void *, u32 *, void *);

static int units = 1, header = 1;
static u32 count;
static char driver[80];

static const char *failure(int code) {
  switch (code) {
  case 3: return "[N/A]";
  case 4: return "[Insufficient Permissions]";
  case 15: return "[GPU is lost]";
  case 16: return "[GPU requires reset]";
  default: return "[Unknown Error]";
  }
}
static const char *put(char *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(out, 128, format, args);
  va_end(args);
  return out;
}
static const char *with(char *out, int code, double value, int digits, const char *unit) {
  if (code) return failure(code);
  return put(out, "%.*f%s%s", digits, value, units ? " " : "", units ? unit : "");
}

typedef int Number(void *, u32 *);
static const struct { const char *name, *unit; Number *call; double scale; int digits; } NUMBERS[] = {
  {"power.draw", "W", nvmlDeviceGetPowerUsage, 1000, 2},
  {"power.limit", "W", nvmlDeviceGetEnforcedPowerLimit, 1000, 2},
  {"enforced.power.limit", "W", nvmlDeviceGetEnforcedPowerLimit, 1000, 2},
  {"fan.speed", "%", nvmlDeviceGetFanSpeed, 1, 0},
  {"pcie.link.gen.current", "", nvmlDeviceGetCurrPcieLinkGeneration, 1, 0},
  {"pcie.link.gen.gpucurrent", "", nvmlDeviceGetCurrPcieLinkGeneration, 1, 0},
  {"pcie.link.width.current", "", nvmlDeviceGetCurrPcieLinkWidth, 1, 0},
};
static const struct { const char *name; u32 kind; int most; } CLOCKS[] = {
  {"clocks.sm", 1, 0}, {"clocks.current.sm", 1, 0}, {"clocks.gr", 0, 0}, {"clocks.current.graphics", 0, 0},
  {"clocks.mem", 2, 0}, {"clocks.current.memory", 2, 0}, {"clocks.max.sm", 1, 1}, {"clocks.max.mem", 2, 1},
};

/* The text of one field, or NULL for a field that nvidia-smi does not know. */
static const char *cell(void *d, int index, const char *field, char *out) {
  u32 number = 0, pair[2] = {0, 0};
  u64 bits = 0;
  int code;
  char text[128] = "";
  if (!strcmp(field, "index")) return put(out, "%d", index);
  if (!strcmp(field, "count")) return put(out, "%u", count);
  if (!strcmp(field, "driver_version")) return driver;
  if (!strcmp(field, "timestamp")) {
    struct timespec t;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &t);
    localtime_r(&t.tv_sec, &local);
    strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &local);
    return put(out, "%s.%03ld", text, t.tv_nsec / 1000000);
  }
  if (!strcmp(field, "name") || !strcmp(field, "gpu_name"))
    return (code = nvmlDeviceGetName(d, out, 96)) ? failure(code) : out;
  if (!strcmp(field, "uuid") || !strcmp(field, "gpu_uuid"))
    return (code = nvmlDeviceGetUUID(d, out, 96)) ? failure(code) : out;
  if (!strcmp(field, "serial")) return (code = nvmlDeviceGetSerial(d, out, 96)) ? failure(code) : out;
  if (!strcmp(field, "pci.bus_id") || !strcmp(field, "gpu_bus_id")) {
    Pci pci;
    return (code = nvmlDeviceGetPciInfo_v3(d, &pci)) ? failure(code) : put(out, "%s", pci.full);
  }
  if (!strncmp(field, "utilization.", 12)) {
    code = nvmlDeviceGetUtilizationRates(d, pair);
    return with(out, code, pair[strcmp(field + 12, "memory") == 0], 0, "%");
  }
  if (!strncmp(field, "memory.", 7)) {
    Memory memory = {.version = 0x02000028};
    code = nvmlDeviceGetMemoryInfo_v2(d, &memory);
    const char *which = field + 7;
    u64 bytes = !strcmp(which, "total") ? memory.total : !strcmp(which, "used") ? memory.used
      : !strcmp(which, "free") ? memory.free : memory.reserved;
    return with(out, code, (double)(bytes >> 20), 0, "MiB");
  }
  if (!strcmp(field, "temperature.gpu")) {
    code = nvmlDeviceGetTemperature(d, 0, &number);
    return code ? failure(code) : put(out, "%u", number);
  }
  for (u32 i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
    if (!strcmp(field, NUMBERS[i].name)) {
      code = NUMBERS[i].call(d, &number);
      const char *unit = *NUMBERS[i].unit ? NUMBERS[i].unit : NULL;
      if (!code && !unit) return put(out, "%u", number);
      return with(out, code, number / NUMBERS[i].scale, NUMBERS[i].digits, unit ? unit : "");
    }
  for (u32 i = 0; i < sizeof CLOCKS / sizeof *CLOCKS; i++)
    if (!strcmp(field, CLOCKS[i].name)) {
      code = CLOCKS[i].most ? nvmlDeviceGetMaxClockInfo(d, CLOCKS[i].kind, &number)
                            : nvmlDeviceGetClockInfo(d, CLOCKS[i].kind, &number);
      return with(out, code, number, 0, "MHz");
    }
  if (!strcmp(field, "clocks_throttle_reasons.active") || !strcmp(field, "clocks_event_reasons.active")) {
    code = nvmlDeviceGetCurrentClocksThrottleReasons(d, &bits);
    return code ? failure(code) : put(out, "0x%016llX", bits);
  }
  if (!strncmp(field, "ecc.errors.", 11) && strstr(field, ".total")) {
    code = nvmlDeviceGetTotalEccErrors(d, strncmp(field + 11, "corrected", 9) != 0, strstr(field, "aggregate") != NULL, &bits);
    return code ? failure(code) : put(out, "%llu", bits);
  }
  if (!strcmp(field, "persistence_mode")) {
    code = nvmlDeviceGetPersistenceMode(d, &number);
    return code ? failure(code) : number ? "Enabled" : "Disabled";
  }
  if (!strcmp(field, "mig.mode.current")) {
    code = nvmlDeviceGetMigMode(d, &number, pair);
    return code ? failure(code) : number ? "Enabled" : "Disabled";
  }
  if (!strcmp(field, "pstate")) {
    code = nvmlDeviceGetPerformanceState(d, &number);
    return code ? failure(code) : put(out, "P%u", number);
  }
  if (!strcmp(field, "compute_mode")) return "Default";
  return NULL;
}

static int split(char *list, char **fields) {
  int found = 0;
  for (char *word = strtok(list, ","); word && found < 64; word = strtok(NULL, ",")) fields[found++] = word;
  return found;
}

static int no_handle(int index, int code) {
  printf("Unable to determine the device handle for GPU%04d:%02X:00.0: %s\n", 0, index + 0x1b, nvmlErrorString(code));
  return code;
}

static int query_gpu(char **fields, int found, int only) {
  char out[160];
  int last = 0, code;
  for (int i = 0; i < (int)count; i++) {
    void *d;
    if (only >= 0 && i != only) continue;
    if ((code = nvmlDeviceGetHandleByIndex_v2(i, &d))) {
      last = no_handle(i, code);
      continue;
    }
    for (int f = 0; f < found; f++) printf("%s%s", f ? ", " : "", cell(d, i, fields[f], out));
    printf("\n");
  }
  return only >= 0 ? last : 0;
}

static int list_of(void *d, Proc *found) {
  u32 room = 256;
  return nvmlDeviceGetComputeRunningProcesses(d, &room, found) ? 0 : (int)room;
}

static void query_apps(char **fields, int found) {
  char out[160], name[128];
  for (u32 i = 0; i < count; i++) {
    void *d;
    Proc listed[256];
    if (nvmlDeviceGetHandleByIndex_v2(i, &d)) continue;
    int procs = list_of(d, listed);
    for (int p = 0; p < procs; p++) {
      for (int f = 0; f < found; f++) {
        const char *text = NULL, *field = fields[f];
        if (!strcmp(field, "pid")) text = put(out, "%u", listed[p].pid);
        else if (!strcmp(field, "used_memory") || !strcmp(field, "used_gpu_memory"))
          text = with(out, listed[p].bytes == ~0ull ? 3 : 0, (double)(listed[p].bytes >> 20), 0, "MiB");
        else if (!strcmp(field, "process_name") || !strcmp(field, "name"))
          text = nvmlSystemGetProcessName(listed[p].pid, name, sizeof name) ? "[Not Found]" : name;
        else text = cell(d, i, field, out);
        printf("%s%s", f ? ", " : "", text ? text : "[N/A]");
      }
      printf("\n");
    }
  }
}

static int table(void) {
  int cuda = 0;
  nvmlSystemGetCudaDriverVersion(&cuda);
  printf("| NVIDIA-SMI %s   Driver Version: %s   CUDA Version: %d.%d |\n", driver, driver, cuda / 1000, cuda % 1000 / 10);
  for (u32 i = 0; i < count; i++) {
    char name[96] = "", out[4][160];
    void *d;
    int code = nvmlDeviceGetHandleByIndex_v2(i, &d);
    if (code || (code = nvmlDeviceGetName(d, name, sizeof name))) {
      no_handle(i, code);
      continue;
    }
    printf("| %3u  %-30s | %s / %s | %s | %s |\n", i, name, cell(d, i, "memory.used", out[0]),
           cell(d, i, "memory.total", out[1]), cell(d, i, "utilization.gpu", out[2]), cell(d, i, "power.draw", out[3]));
  }
  return 0;
}

static int list(void) {
  for (u32 i = 0; i < count; i++) {
    char name[96], uuid[96];
    void *d;
    int code = nvmlDeviceGetHandleByIndex_v2(i, &d);
    if (code || (code = nvmlDeviceGetName(d, name, sizeof name)) || (code = nvmlDeviceGetUUID(d, uuid, sizeof uuid)))
      no_handle(i, code);
    else printf("GPU %u: %s (UUID: %s)\n", i, name, uuid);
  }
  return 0;
}

static int xml(void) {
  static const char *const TAGS[][2] = {
    {"product_name", "name"}, {"uuid", "uuid"}, {"fb_memory_usage/total", "memory.total"},
    {"fb_memory_usage/used", "memory.used"}, {"utilization/gpu_util", "utilization.gpu"},
    {"temperature/gpu_temp", "temperature.gpu"}, {"gpu_power_readings/power_draw", "power.draw"},
  };
  printf("<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<driver_version>%s</driver_version>\n<attached_gpus>%u</attached_gpus>\n", driver, count);
  for (u32 i = 0; i < count; i++) {
    char out[160];
    void *d;
    if (nvmlDeviceGetHandleByIndex_v2(i, &d)) continue;
    printf("<gpu id=\"%s\">\n", cell(d, i, "pci.bus_id", out));
    for (u32 t = 0; t < sizeof TAGS / sizeof *TAGS; t++) {
      char path[64];
      snprintf(path, sizeof path, "%s", TAGS[t][0]);
      char *inner = strchr(path, '/');
      if (inner) *inner++ = 0, printf("<%s><%s>%s</%s></%s>\n", path, inner, cell(d, i, TAGS[t][1], out), inner, path);
      else printf("<%s>%s</%s>\n", path, cell(d, i, TAGS[t][1], out), path);
    }
    printf("<processes>\n");
    Proc listed[256];
    int procs = list_of(d, listed);
    for (int p = 0; p < procs; p++) printf("<process_info><pid>%u</pid></process_info>\n", listed[p].pid);
    printf("</processes>\n</gpu>\n");
  }
  printf("</nvidia_smi_log>\n");
  return 0;
}

static int cannot_open(int code) {
  char version[80] = "";
  if (code == 9 || code == 12) {
    printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
           "Make sure that the latest NVIDIA driver is installed and running.\n\n");
    return 9;
  }
  printf("Failed to initialize NVML: %s\n", nvmlErrorString(code));
  nvmlSystemGetNVMLVersion(version, sizeof version);
  if (code == 18) printf("NVML library version: %s\n", version + (strncmp(version, "12.", 3) ? 0 : 3));
  return code > 255 ? 255 : code;
}

int main(int argc, char **argv) {
  char *gpu = NULL, *apps = NULL, *fields[64], out[160];
  int ms = 0, only = -1, names = 0, as_xml = 0, code, found;
  for (int i = 1; i < argc; i++) {
    char *word = argv[i];
    if (!strncmp(word, "--query-gpu=", 12)) gpu = word + 12;
    else if (!strncmp(word, "--query-compute-apps=", 21)) apps = word + 21;
    else if (!strncmp(word, "--format=", 9)) header = !strstr(word, "noheader"), units = !strstr(word, "nounits");
    else if (!strncmp(word, "-lms", 4)) ms = atoi(word[4] ? word + 4 + (word[4] == '=') : ++i < argc ? argv[i] : "1000");
    else if (!strncmp(word, "--loop-ms=", 10)) ms = atoi(word + 10);
    else if (!strcmp(word, "-l") && i + 1 < argc) ms = 1000 * atoi(argv[++i]);
    else if (!strncmp(word, "-i", 2)) only = atoi(word[2] ? word + 2 + (word[2] == '=') : ++i < argc ? argv[i] : "0");
    else if (!strcmp(word, "-L") || !strcmp(word, "--list-gpus")) names = 1;
    else if (!strcmp(word, "-x")) as_xml = 1;
    else if (!strcmp(word, "--version")) return printf("NVIDIA-SMI version  : double\n") < 0;
  }
  if ((code = nvmlInit_v2())) return cannot_open(code);
  nvmlSystemGetDriverVersion(driver, sizeof driver);
  nvmlDeviceGetCount_v2(&count);
  if (!count) return puts("No devices were found"), 6;
  if (names) return list();
  if (as_xml) return xml();
  if (!gpu && !apps) return table();
  char *wanted = gpu ? gpu : apps;
  found = split(wanted, fields);
  for (int f = 0; f < found && gpu; f++) {
    void *d = NULL;
    for (u32 i = 0; i < count && !d; i++) nvmlDeviceGetHandleByIndex_v2(i, &d);
    if (d && !cell(d, 0, fields[f], out)) {
      printf("Field \"%s\" is not a valid field to query.\n\n", fields[f]);
      return 2;
    }
  }
  if (header) {
    for (int f = 0; f < found; f++) printf("%s%s", f ? ", " : "", fields[f]);
    printf("\n");
  }
  for (;;) {
    code = 0;
    if (gpu) code = query_gpu(fields, found, only);
    else query_apps(fields, found);
    if (fflush(stdout)) return 1;
    if (!ms) return code;
    usleep(ms * 1000u);
  }
}
