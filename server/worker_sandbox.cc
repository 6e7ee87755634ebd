#include "server/worker_sandbox.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kiln {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Numbers from here on are the x32 twins of the ones that are listed.
constexpr uint32_t kFirstForeignCall = 0x40000000;

constexpr uint32_t kDenied[] = {
#if defined(__x86_64__)
    SYS_open,
    SYS_creat,
    SYS_fork,
    SYS_vfork,
    SYS_rename,
    SYS_unlink,
    SYS_mkdir,
    SYS_link,
    SYS_symlink,
    SYS_chmod,
    SYS_chown,
#endif
    SYS_openat,
    SYS_openat2,
    SYS_open_by_handle_at,
    SYS_memfd_create,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_truncate,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_io_uring_setup,
    SYS_execve,
    SYS_execveat,
    SYS_kill,
    SYS_tkill,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_mount,
    SYS_umount2,
    SYS_unshare,
    SYS_setns,
    SYS_chroot,
    SYS_keyctl,
    SYS_userfaultfd,
    SYS_shmget,
    SYS_shmat,
    SYS_msgget,
    SYS_mq_open};

constexpr uint32_t kDeny = SECCOMP_RET_ERRNO | EPERM;

// A filter for the kernel's classic BPF machine (seccomp(2)), written forward.
class Filter {
 public:
  void Load(size_t offset) {
    code_.push_back(
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }
  void Return(uint32_t verdict) {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
  }
  // Skips the next `count` instructions unless `comparison` (BPF_JEQ, BPF_JGE,
  // BPF_JSET) of what was loaded with `value` holds.
  void SkipUnless(uint16_t comparison, uint32_t value, uint8_t count) {
    code_.push_back(BPF_JUMP(
        static_cast<uint16_t>(BPF_JMP | comparison | BPF_K), value, 0, count));
  }
  sock_fprog program() {
    return {static_cast<unsigned short>(code_.size()), code_.data()};
  }

 private:
  std::vector<sock_filter> code_;
};

// The call is allowed if its first argument compares so.
void AllowByFirstArgument(uint32_t call, uint16_t comparison, uint32_t value,
                          Filter* filter) {
  filter->SkipUnless(BPF_JEQ, call, 4);
  filter->Load(offsetof(seccomp_data, args[0]));  // low half: little-endian
  filter->SkipUnless(comparison, value, 1);
  filter->Return(SECCOMP_RET_ALLOW);
  filter->Return(kDeny);
}

Filter WorkerFilter() {
  Filter filter;
  filter.Load(offsetof(seccomp_data, arch));
  filter.SkipUnless(BPF_JEQ, kArchitecture, 1);
  filter.Load(offsetof(seccomp_data, nr));
  // Falls through with the architecture loaded, which no call's number equals
  // and which is over the first foreign one.
  filter.SkipUnless(BPF_JGE, kFirstForeignCall, 1);
  filter.Return(kDeny);
  for (const uint32_t call : kDenied) {
    filter.SkipUnless(BPF_JEQ, call, 1);
    filter.Return(kDeny);
  }
  // Its flags are in memory, where a filter cannot look; the C library then
  // starts threads by clone.
  filter.SkipUnless(BPF_JEQ, SYS_clone3, 1);
  filter.Return(SECCOMP_RET_ERRNO | ENOSYS);
  AllowByFirstArgument(SYS_clone, BPF_JSET, CLONE_THREAD, &filter);
  // abort() signals its own process.
  AllowByFirstArgument(SYS_tgkill, BPF_JEQ, static_cast<uint32_t>(getpid()),
                       &filter);
  filter.Return(SECCOMP_RET_ALLOW);
  return filter;
}

}  // namespace

absl::Status EnterWorkerSandbox() {
  Filter filter = WorkerFilter();
  const sock_fprog program = filter.program();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return absl::UnavailableError(fmt::format(
        "The kernel takes no seccomp filter ({}).", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace kiln
