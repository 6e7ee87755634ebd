#ifndef KILN_CACHE_MUTEX_H_
#define KILN_CACHE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread safety annotations; other compilers ignore them. Meaning:
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#if defined(__clang__)
#define KILN_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define KILN_THREAD_ANNOTATION(x)
#endif
#define KILN_CAPABILITY(x) KILN_THREAD_ANNOTATION(capability(x))
#define KILN_SCOPED_CAPABILITY KILN_THREAD_ANNOTATION(scoped_lockable)
#define KILN_GUARDED_BY(x) KILN_THREAD_ANNOTATION(guarded_by(x))
#define KILN_PT_GUARDED_BY(x) KILN_THREAD_ANNOTATION(pt_guarded_by(x))
#define KILN_ACQUIRED_BEFORE(...) \
  KILN_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))
#define KILN_ACQUIRED_AFTER(...) \
  KILN_THREAD_ANNOTATION(acquired_after(__VA_ARGS__))
#define KILN_REQUIRES(...) \
  KILN_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define KILN_EXCLUDES(...) KILN_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define KILN_ACQUIRE(...) \
  KILN_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define KILN_RELEASE(...) \
  KILN_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define KILN_NO_THREAD_SAFETY_ANALYSIS \
  KILN_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace kiln {

// std::mutex with annotations. Not recursive. Every lock of ours is one: the
// sanitizers and clang's analysis understand it, absl's as Debian builds it
// they do not.
class KILN_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() KILN_ACQUIRE() { mutex_.lock(); }
  void Unlock() KILN_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for the life of a scope.
class KILN_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KILN_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() KILN_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex. Waits may wake for no reason: loop on the
// condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) KILN_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // False if `timeout` passed first.
  bool WaitFor(Mutex& mutex, std::chrono::milliseconds timeout)
      KILN_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken =
        condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace kiln

#endif  // KILN_CACHE_MUTEX_H_
