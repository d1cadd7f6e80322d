/* A double of libnvidia-ml.so.1: the part of NVML that pynvml's users call, answered from a scenario file.
 *
 * The file is named by NVML_DOUBLE and read anew when it changes. One statement a line, # begins a comment:
 *
 *   driver 550.54.14            version words: driver, nvml; cuda 12.4
 *   init 18                     nvmlInit returns this code (0 is the default); init hang; init sleep 3000
 *   gpus 8                      this many cards, each a healthy one with defaults
 *   time 12.5                   freeze the clock; else it counts seconds since the file was written
 *   missing nvmlFunction        that function answers 13 (Function Not Found)
 *   layout r535                 the _v3 process lists write the 32-byte struct that R535 wrote
 *   link 0 1 12                 twelve NVLinks between two cards;  topo 0 1 30: their common ancestor
 *   gpu 3 FIELD VALUE           one card; gpu * FIELD VALUE: every card
 *
 * VALUE is a number, n/a (code 3), !CODE (that code), wave LOW HIGH PERIOD_S or ramp START PER_S MAX.
 * Fields with a number: util mem_util mem_total mem_used mem_reserved (MiB; a number with B is bytes)
 *   temp power power_limit (W) fan sm_clock mem_clock sm_clock_max mem_clock_max (MHz) throttle (0x…)
 *   ecc_corrected ecc_uncorrected remap_corrected remap_uncorrected remap_pending remap_failed retired
 *   pcie_gen pcie_width pcie_gen_max pcie_width_max links_down (the first so many NVLinks)
 *   pcie_rx pcie_tx (KiB/s) persistence mig compute_mode pstate encoder decoder handle
 *   (`handle !999`: the card has no handle).
 * Fields with words: name uuid bus serial.
 * Events: `gpu 3 lost 5`: from that second on every call answers 15; `gpu 3 back 9`: and no more;
 *   `gpu 3 xid 79 2`: an Xid for the event set at that second.
 * Faults: `gpu 3 sleep FIELD MS`, `gpu 3 hang FIELD [FROM_S]`; FIELD may be any or proc.
 * Processes: `gpu 3 proc PID MIB [C|G|B]` (compute, graphics, both); MIB may be n/a or end with B.
 *   A fourth word is the slice that it runs on; the list of a slice names its own alone.
 * MIG: `gpu 3 mig 1` and `gpu 3 instance 1g.10gb TOTAL_MIB USED_MIB` for each slice.
 */
#include "scenario.h"

#define ENTER(d) \
  Ret ret = enter(__func__); \
  if (ret) return ret; \
  if (!(d)) return BADARG; \
  Gpu *g = ((Device *)(d))->gpu; \
  (void)g
#define CARD_ONLY(d) \
  ENTER(d); \
  if (((Device *)(d))->slice >= 0) return NOSUP
#define NUMBER(function, field, scale) \
  API Ret function(void *d, u32 *out) { \
    CARD_ONLY(d); \
    return get_u32(g, field, scale, out); \
  }
#define UNSUPPORTED(function) \
  API Ret function(void *d) { \
    ENTER(d); \
    return NOSUP; \
  }

static Ret copy(const char *text, char *out, u32 size) {
  if (size < strlen(text) + 1) return TOOSMALL;
  strcpy(out, text);
  return OK;
}

API const char *nvmlErrorString(Ret ret) {
  switch (ret) {
  case 0: return "Success";
  case 1: return "Uninitialized";
  case 2: return "Invalid Argument";
  case 3: return "Not Supported";
  case 4: return "Insufficient Permissions";
  case 6: return "Not Found";
  case 7: return "Insufficient Size";
  case 9: return "Driver Not Loaded";
  case 10: return "Timeout";
  case 12: return "NVML Shared Library Not Found";
  case 13: return "Function Not Found";
  case 15: return "GPU is lost";
  case 16: return "GPU requires reset";
  case 18: return "Driver/library version mismatch";
  default: return "Unknown Error";
  }
}

API Ret nvmlInitWithFlags(u32 flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  looked = -1;
  load();
  int code = S.init, ms = S.init_sleep_ms, stuck = S.init_hang;
  pthread_mutex_unlock(&lock);
  if (ms) pause_ms(ms);
  if (stuck) hang();
  if (!code) inits++;
  return code;
}
API Ret nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API Ret nvmlInit(void) { return nvmlInitWithFlags(0); }
API Ret nvmlShutdown(void) {
  if (inits <= 0) return UNINIT;
  inits--;
  return OK;
}
API Ret nvmlSystemGetDriverVersion(char *out, u32 size) {
  Ret ret = enter(__func__);
  return ret ? ret : copy(S.driver, out, size);
}
API Ret nvmlSystemGetNVMLVersion(char *out, u32 size) {
  pthread_mutex_lock(&lock);
  load();
  pthread_mutex_unlock(&lock);
  return copy(S.nvml, out, size);
}
API Ret nvmlSystemGetCudaDriverVersion(int *out) {
  Ret ret = enter(__func__);
  *out = S.cuda;
  return ret;
}
API Ret nvmlSystemGetCudaDriverVersion_v2(int *out) {
  Ret ret = enter(__func__);
  *out = S.cuda;
  return ret;
}
API Ret nvmlSystemGetProcessName(u32 pid, char *out, u32 size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/comm", pid);
  FILE *file = fopen(path, "r");
  if (!file) return NOTFOUND;
  if (!fgets(out, (int)size, file)) *out = 0;
  out[strcspn(out, "\n")] = 0;
  fclose(file);
  return OK;
}
API Ret nvmlDeviceGetCount_v2(u32 *out) {
  Ret ret = enter(__func__);
  if (!ret) *out = S.gpus;
  return ret;
}
API Ret nvmlDeviceGetCount(u32 *out) { return nvmlDeviceGetCount_v2(out); }

static Ret handle_of(int index, void **out) {
  double unused;
  if (index < 0 || index >= S.gpus) return BADARG;
  Ret ret = get(&S.gpu[index], HANDLE, &unused);
  if (!ret) *out = &S.gpu[index];
  return ret;
}
API Ret nvmlDeviceGetHandleByIndex_v2(u32 index, void **out) {
  Ret ret = enter(__func__);
  return ret ? ret : handle_of((int)index, out);
}
API Ret nvmlDeviceGetHandleByIndex(u32 index, void **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }
API Ret nvmlDeviceGetHandleByUUID(const char *uuid, void **out) {
  Ret ret = enter(__func__);
  for (int i = 0; !ret && i < S.gpus; i++)
    if (!strcmp(S.gpu[i].uuid, uuid)) return handle_of(i, out);
  return ret ? ret : NOTFOUND;
}
API Ret nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out) {
  Ret ret = enter(__func__);
  for (int i = 0; !ret && i < S.gpus; i++)
    if (strcasestr(S.gpu[i].bus, bus)) return handle_of(i, out);
  return ret ? ret : NOTFOUND;
}
API Ret nvmlDeviceGetHandleBySerial(const char *serial, void **out) {
  Ret ret = enter(__func__);
  for (int i = 0; !ret && i < S.gpus; i++)
    if (!strcmp(S.gpu[i].serial, serial)) return handle_of(i, out);
  return ret ? ret : NOTFOUND;
}

API Ret nvmlDeviceGetIndex(void *d, u32 *out) {
  ENTER(d);
  Device *device = d;
  *out = device->slice >= 0 ? device->slice : g->index;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetMinorNumber(void *d, u32 *out) {
  CARD_ONLY(d);
  *out = g->index;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetName(void *d, char *out, u32 size) {
  ENTER(d);
  Device *device = d;
  char text[160];
  if ((ret = alive(g, HANDLE))) return ret;
  if (device->slice < 0) return copy(g->name, out, size);
  snprintf(text, sizeof text, "%s MIG %s", g->name, g->slice[device->slice].profile);
  return copy(text, out, size);
}
API Ret nvmlDeviceGetUUID(void *d, char *out, u32 size) {
  ENTER(d);
  Device *device = d;
  char text[160];
  if ((ret = alive(g, HANDLE))) return ret;
  if (device->slice < 0) return copy(g->uuid, out, size);
  snprintf(text, sizeof text, "MIG-%02x%s", device->slice, g->uuid + 4);
  return copy(text, out, size);
}
API Ret nvmlDeviceGetSerial(void *d, char *out, u32 size) {
  ENTER(d);
  return (ret = alive(g, HANDLE)) ? ret : copy(g->serial, out, size);
}
typedef struct {
  char legacy[16];
  u32 domain, bus, device, id, subsystem;
  char full[32];
} Pci;
API Ret nvmlDeviceGetPciInfo_v3(void *d, Pci *out) {
  CARD_ONLY(d);
  if ((ret = alive(g, HANDLE))) return ret;
  memset(out, 0, sizeof *out);
  sscanf(g->bus, "%x:%x:%x", &out->domain, &out->bus, &out->device);
  snprintf(out->legacy, sizeof out->legacy, "%04x:%02x:%02x.0", out->domain & 0xffff, out->bus & 0xff, out->device & 0xff);
  snprintf(out->full, sizeof out->full, "%s", g->bus);
  out->id = 0x233010de;
  return OK;
}
API Ret nvmlDeviceGetPciInfo_v2(void *d, Pci *out) { return nvmlDeviceGetPciInfo_v3(d, out); }

API Ret nvmlDeviceGetUtilizationRates(void *d, u32 *out) {
  CARD_ONLY(d);
  double mig = 0;
  get(g, MIG, &mig);
  if (mig > 0) return NOSUP;
  return (ret = get_u32(g, UTIL, 1, out)) ? ret : get_u32(g, MEM_UTIL, 1, out + 1);
}
static Ret sizes(Device *device, u64 *total, u64 *used, u64 *reserved) {
  Gpu *g = device->gpu;
  Ret ret;
  if (device->slice >= 0) {
    *total = g->slice[device->slice].total, *used = g->slice[device->slice].used, *reserved = 0;
    return alive(g, MEM_USED);
  }
  if ((ret = get_bytes(g, MEM_TOTAL, total)) || (ret = get_bytes(g, MEM_USED, used))) return ret;
  if (get_bytes(g, MEM_RESERVED, reserved)) *reserved = 0;
  return OK;
}
API Ret nvmlDeviceGetMemoryInfo(void *d, u64 *out) { /* total, free, used: reserved counts as used */
  ENTER(d);
  u64 total, used, reserved;
  if ((ret = sizes(d, &total, &used, &reserved))) return ret;
  used = used == ~0ull ? used : used + reserved;
  out[0] = total, out[1] = total > used ? total - used : 0, out[2] = used;
  return OK;
}
typedef struct { u32 version; u64 total, reserved, free, used; } Memory2;
API Ret nvmlDeviceGetMemoryInfo_v2(void *d, Memory2 *out) {
  ENTER(d);
  if (out->version != 0x02000028) return 25;
  u64 taken;
  if ((ret = sizes(d, &out->total, &out->used, &out->reserved))) return ret;
  taken = out->used + out->reserved;
  out->free = out->total > taken ? out->total - taken : 0;
  return OK;
}
API Ret nvmlDeviceGetBAR1MemoryInfo(void *d, u64 *out) {
  CARD_ONLY(d);
  if ((ret = alive(g, MEM_TOTAL))) return ret;
  out[0] = 131072ull << 20, out[1] = 131070ull << 20, out[2] = 2ull << 20;
  return OK;
}
API Ret nvmlDeviceGetTemperature(void *d, u32 sensor, u32 *out) {
  CARD_ONLY(d);
  (void)sensor;
  return get_u32(g, TEMP, 1, out);
}
typedef struct { u32 version; int sensor, temperature; } Temperature1;
API Ret nvmlDeviceGetTemperatureV(void *d, Temperature1 *out) {
  CARD_ONLY(d);
  return get_u32(g, TEMP, 1, (u32 *)&out->temperature);
}
API Ret nvmlDeviceGetTemperatureThreshold(void *d, u32 kind, u32 *out) {
  CARD_ONLY(d);
  *out = kind == 0 ? 92 : kind == 1 ? 89 : 87;
  return alive(g, TEMP);
}
NUMBER(nvmlDeviceGetPowerUsage, POWER, 1000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, POWER_LIMIT, 1000)
NUMBER(nvmlDeviceGetPowerManagementLimit, POWER_LIMIT, 1000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, POWER_LIMIT, 1000)
NUMBER(nvmlDeviceGetFanSpeed, FAN, 1)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, PCIE_GEN, 1)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, PCIE_GEN_MAX, 1)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, PCIE_WIDTH, 1)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, PCIE_WIDTH_MAX, 1)
NUMBER(nvmlDeviceGetPersistenceMode, PERSISTENCE, 1)
NUMBER(nvmlDeviceGetComputeMode, COMPUTE_MODE, 1)
NUMBER(nvmlDeviceGetPerformanceState, PSTATE, 1)
NUMBER(nvmlDeviceGetPowerState, PSTATE, 1)
API Ret nvmlDeviceGetPowerManagementLimitConstraints(void *d, u32 *low, u32 *high) {
  CARD_ONLY(d);
  *low = 200000;
  return get_u32(g, POWER_LIMIT, 1000, high);
}
API Ret nvmlDeviceGetTotalEnergyConsumption(void *d, u64 *out) {
  CARD_ONLY(d);
  *out = (u64)(now() * 300000.0);
  return alive(g, POWER);
}
static Ret clock_of(Gpu *g, u32 kind, int sm, int memory, u32 *out) {
  return kind == 2 ? get_u32(g, memory, 1, out) : get_u32(g, sm, 1, out);
}
API Ret nvmlDeviceGetClockInfo(void *d, u32 kind, u32 *out) {
  CARD_ONLY(d);
  return clock_of(g, kind, SM_CLOCK, MEM_CLOCK, out);
}
API Ret nvmlDeviceGetMaxClockInfo(void *d, u32 kind, u32 *out) {
  CARD_ONLY(d);
  return clock_of(g, kind, SM_CLOCK_MAX, MEM_CLOCK_MAX, out);
}
API Ret nvmlDeviceGetApplicationsClock(void *d, u32 kind, u32 *out) { return nvmlDeviceGetMaxClockInfo(d, kind, out); }
static Ret reasons(void *d, u64 *out) {
  double bits;
  Gpu *g = ((Device *)d)->gpu;
  Ret ret = get(g, THROTTLE, &bits);
  if (!ret) *out = (u64)bits;
  return ret;
}
API Ret nvmlDeviceGetCurrentClocksThrottleReasons(void *d, u64 *out) {
  CARD_ONLY(d);
  return reasons(d, out);
}
API Ret nvmlDeviceGetCurrentClocksEventReasons(void *d, u64 *out) {
  CARD_ONLY(d);
  return reasons(d, out);
}
API Ret nvmlDeviceGetSupportedClocksThrottleReasons(void *d, u64 *out) {
  CARD_ONLY(d);
  *out = 0x1ff;
  return OK;
}
API Ret nvmlDeviceGetEccMode(void *d, u32 *current, u32 *pending) {
  CARD_ONLY(d);
  double unused;
  *current = *pending = 1;
  return get(g, ECC_UNCORRECTED, &unused);
}
API Ret nvmlDeviceGetTotalEccErrors(void *d, u32 kind, u32 counter, u64 *out) {
  CARD_ONLY(d);
  double number;
  (void)counter;
  if ((ret = get(g, kind == 0 ? ECC_CORRECTED : ECC_UNCORRECTED, &number))) return ret;
  *out = number >= 1.8e19 ? ~0ull : (u64)number;
  return OK;
}
API Ret nvmlDeviceGetMemoryErrorCounter(void *d, u32 kind, u32 counter, u32 place, u64 *out) {
  (void)place;
  return nvmlDeviceGetTotalEccErrors(d, kind, counter, out);
}
API Ret nvmlDeviceGetRemappedRows(void *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
  CARD_ONLY(d);
  if ((ret = get_u32(g, REMAP_FAILED, 1, failed))) return ret;
  if ((ret = get_u32(g, REMAP_CORRECTED, 1, corrected))) return ret;
  if ((ret = get_u32(g, REMAP_UNCORRECTED, 1, uncorrected))) return ret;
  return get_u32(g, REMAP_PENDING, 1, pending);
}
API Ret nvmlDeviceGetRetiredPages(void *d, u32 cause, u32 *count, u64 *out) {
  CARD_ONLY(d);
  u32 all = 0, room = *count;
  if ((ret = get_u32(g, RETIRED, 1, &all))) return ret;
  *count = cause == 0 ? all : 0;
  if (*count > room) return TOOSMALL;
  for (u32 i = 0; i < *count && out; i++) out[i] = 0x1000ull * (i + 1);
  return OK;
}
API Ret nvmlDeviceGetRetiredPagesPendingStatus(void *d, u32 *out) {
  CARD_ONLY(d);
  *out = 0;
  return alive(g, RETIRED);
}
API Ret nvmlDeviceGetPcieThroughput(void *d, u32 way, u32 *out) {
  CARD_ONLY(d);
  pause_ms(20);
  return get_u32(g, way == 0 ? PCIE_TX : PCIE_RX, 1, out);
}
API Ret nvmlDeviceGetEncoderUtilization(void *d, u32 *out, u32 *period) {
  CARD_ONLY(d);
  *period = 167000;
  return get_u32(g, ENCODER, 1, out);
}
API Ret nvmlDeviceGetDecoderUtilization(void *d, u32 *out, u32 *period) {
  CARD_ONLY(d);
  *period = 167000;
  return get_u32(g, DECODER, 1, out);
}
API Ret nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor) {
  ENTER(d);
  *major = 9, *minor = 0;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetArchitecture(void *d, u32 *out) {
  ENTER(d);
  *out = 9;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetBrand(void *d, u32 *out) {
  ENTER(d);
  *out = 14;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetNumGpuCores(void *d, u32 *out) {
  ENTER(d);
  *out = 16896;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetMemoryBusWidth(void *d, u32 *out) {
  CARD_ONLY(d);
  *out = 5120;
  return alive(g, MEM_CLOCK);
}
API Ret nvmlDeviceGetDisplayMode(void *d, u32 *out) {
  CARD_ONLY(d);
  *out = 0;
  return alive(g, HANDLE);
}
API Ret nvmlDeviceGetDisplayActive(void *d, u32 *out) {
  CARD_ONLY(d);
  *out = 0;
  return alive(g, HANDLE);
}
UNSUPPORTED(nvmlDeviceGetCurrentDriverModel)
UNSUPPORTED(nvmlDeviceGetDriverModel)
UNSUPPORTED(nvmlDeviceGetDriverModel_v2)
UNSUPPORTED(nvmlDeviceGetProcessUtilization)
UNSUPPORTED(nvmlDeviceGetProcessesUtilizationInfo)
UNSUPPORTED(nvmlDeviceGetSamples)
UNSUPPORTED(nvmlDeviceGetAccountingMode)
UNSUPPORTED(nvmlDeviceGetVirtualizationMode)
UNSUPPORTED(nvmlDeviceGetGspFirmwareMode)
UNSUPPORTED(nvmlDeviceGetNumFans)
UNSUPPORTED(nvmlDeviceGetInforomVersion)
UNSUPPORTED(nvmlDeviceGetVbiosVersion)
UNSUPPORTED(nvmlDeviceGetBoardPartNumber)
UNSUPPORTED(nvmlDeviceGetAttributes_v2)

API Ret nvmlDeviceGetMigMode(void *d, u32 *current, u32 *pending) {
  CARD_ONLY(d);
  ret = get_u32(g, MIG, 1, current);
  *pending = *current;
  return ret;
}
API Ret nvmlDeviceGetMaxMigDeviceCount(void *d, u32 *out) {
  CARD_ONLY(d);
  *out = 7;
  return alive(g, MIG);
}
API Ret nvmlDeviceGetMigDeviceHandleByIndex(void *d, u32 index, void **out) {
  CARD_ONLY(d);
  double mig = 0;
  if ((ret = get(g, MIG, &mig))) return ret;
  if (mig <= 0 || (int)index >= g->slices) return NOTFOUND;
  *out = &g->slice[index];
  return OK;
}
API Ret nvmlDeviceIsMigDeviceHandle(void *d, u32 *out) {
  ENTER(d);
  *out = ((Device *)d)->slice >= 0;
  return OK;
}
API Ret nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *d, void **out) {
  ENTER(d);
  *out = g;
  return OK;
}
API Ret nvmlDeviceGetGpuInstanceId(void *d, u32 *out) {
  ENTER(d);
  *out = 1 + ((Device *)d)->slice;
  return OK;
}
API Ret nvmlDeviceGetComputeInstanceId(void *d, u32 *out) {
  ENTER(d);
  *out = 0;
  return OK;
}

typedef struct { u32 pid; u64 bytes; u32 gi, ci; } Info2;
typedef struct { u32 pid; u64 bytes; u32 gi, ci; u64 protected_bytes; } Info535;
typedef struct { u32 pid; u64 bytes; } Info1;

static int listed(Proc *p, int kind, int slice) {
  return (p->kinds & kind) && (slice < 0 || p->slice < 0 || p->slice == slice);
}
static Ret list(void *d, int kind, int version, u32 *room, void *out) {
  Gpu *g = ((Device *)d)->gpu;
  Ret ret = alive(g, PROC);
  if (ret || (ret = g->value[PROC].kind == 1 ? g->value[PROC].code : OK)) return ret;
  u32 count = 0, size = *room;
  int slice = ((Device *)d)->slice;
  for (int i = 0; i < g->procs; i++) count += listed(&g->proc[i], kind, slice);
  *room = count;
  if (count == 0) return OK;
  if (size < count || !out) return TOOSMALL;
  count = 0;
  for (int i = 0; i < g->procs; i++) {
    Proc *p = &g->proc[i];
    if (!listed(p, kind, slice)) continue;
    if (version == 1) ((Info1 *)out)[count] = (Info1){p->pid, p->bytes};
    else if (version == 3 && S.r535) ((Info535 *)out)[count] = (Info535){p->pid, p->bytes, ~0u, ~0u, 0};
    else ((Info2 *)out)[count] = (Info2){p->pid, p->bytes, ~0u, ~0u};
    count++;
  }
  return OK;
}
#define LIST(function, kind, version) \
  API Ret function(void *d, u32 *room, void *out) { \
    ENTER(d); \
    return list(d, kind, version, room, out); \
  }
LIST(nvmlDeviceGetComputeRunningProcesses, 1, 1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 1, 2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 1, 3)
LIST(nvmlDeviceGetGraphicsRunningProcesses, 2, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 2, 2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 2, 3)
API Ret nvmlDeviceGetMPSComputeRunningProcesses_v3(void *d, u32 *room, void *out) {
  ENTER(d);
  (void)out;
  *room = 0;
  return OK;
}

API Ret nvmlDeviceGetTopologyCommonAncestor(void *one, void *two, int *out) {
  ENTER(one);
  *out = S.topo[g->index][((Device *)two)->gpu->index];
  if (!*out) *out = 30;
  return OK;
}
static int peer_of(Gpu *g, u32 link) {
  u32 passed = 0;
  for (int other = 0; other < S.gpus; other++) {
    passed += S.links[g->index][other];
    if (link < passed) return other;
  }
  return -1;
}
API Ret nvmlDeviceGetNvLinkState(void *d, u32 link, u32 *out) {
  CARD_ONLY(d);
  if ((ret = alive(g, HANDLE))) return ret;
  if (peer_of(g, link) < 0) return NOSUP;
  u32 down = 0;
  if ((ret = get_u32(g, LINKS_DOWN, 1, &down))) return ret;
  *out = link >= down;
  return OK;
}
API Ret nvmlDeviceGetNvLinkRemotePciInfo_v2(void *d, u32 link, Pci *out) {
  CARD_ONLY(d);
  int peer = peer_of(g, link);
  return peer < 0 ? NOSUP : nvmlDeviceGetPciInfo_v3(&S.gpu[peer], out);
}
typedef struct { u32 id, scope; long long stamp, latency; int type; Ret ret; u64 value; } FieldValue;
API Ret nvmlDeviceGetFieldValues(void *d, int count, FieldValue *out) {
  ENTER(d);
  for (int i = 0; i < count; i++) out[i].ret = NOSUP;
  return alive(g, HANDLE);
}

static Gpu *registered[GPUS];
API Ret nvmlEventSetCreate(void **out) {
  Ret ret = enter(__func__);
  *out = registered;
  return ret;
}
API Ret nvmlEventSetFree(void *set) {
  (void)set;
  memset(registered, 0, sizeof registered);
  return OK;
}
API Ret nvmlDeviceGetSupportedEventTypes(void *d, u64 *out) {
  CARD_ONLY(d);
  *out = 8;
  return OK;
}
API Ret nvmlDeviceRegisterEvents(void *d, u64 types, void *set) {
  CARD_ONLY(d);
  (void)set;
  if (!(types & 8)) return NOSUP;
  registered[g->index] = g;
  return alive(g, HANDLE);
}
typedef struct { void *device; u64 type, data; u32 gi, ci; } Event;
API Ret nvmlEventSetWait_v2(void *set, Event *out, u32 limit_ms) {
  Ret ret = enter(__func__);
  double end = clock_s(CLOCK_MONOTONIC) + limit_ms / 1e3;
  (void)set;
  while (!ret) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < S.gpus; i++)
      for (int x = 0; registered[i] && x < S.gpu[i].xids; x++)
        if (!S.gpu[i].xid[x].told && now() >= S.gpu[i].xid[x].at) {
          S.gpu[i].xid[x].told = 1;
          *out = (Event){&S.gpu[i], 8, S.gpu[i].xid[x].xid, ~0u, ~0u};
          pthread_mutex_unlock(&lock);
          return OK;
        }
    pthread_mutex_unlock(&lock);
    if (clock_s(CLOCK_MONOTONIC) >= end) return TIMEOUT;
    pause_ms(5);
    ret = enter(__func__);
  }
  return ret;
}
API Ret nvmlEventSetWait(void *set, Event *out, u32 limit_ms) { return nvmlEventSetWait_v2(set, out, limit_ms); }
