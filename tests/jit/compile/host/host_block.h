// The threads of a block, one after another on one thread of the host. Each
// runs until it waits for others.
#ifndef KILN_TESTS_JIT_COMPILE_HOST_HOST_BLOCK_H_
#define KILN_TESTS_JIT_COMPILE_HOST_HOST_BLOCK_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

class HostBlock {
 public:
  // Calls `body` as each of `threads` threads, until all have returned. Their
  // order is turned around from turn to turn and from block to block: without a
  // barrier that it needs, a thread runs ahead of those before it, or of those
  // behind.
  void Run(uint32_t threads, const std::function<void(uint32_t)>& body) {
    body_ = &body;
    while (threads_.size() < threads) threads_.push_back(MakeThread());
    for (uint32_t i = 0; i < threads; ++i) threads_[i]->state = State::kNew;
    begins_forward_ = !begins_forward_;
    uint32_t live = threads;
    for (bool forward = begins_forward_; live > 0; forward = !forward) {
      for (uint32_t i = 0; i < threads; ++i) {
        current_ = forward ? i : threads - 1 - i;
        Thread& thread = *threads_[current_];
        if (thread.state == State::kEnded) continue;
        GoOn(&thread);
        if (thread.state == State::kEnded) --live;
      }
    }
  }

  // Lets the others run before the thread that calls it goes on.
  void Yield() {
    if (_setjmp(threads_[current_]->place) == 0) _longjmp(scheduler_, 1);
  }

  uint32_t current() const { return current_; }

 private:
  // Kernels have no frames larger than the registers of a thread.
  static constexpr size_t kStackBytes = 128 << 10;

  enum class State : uint8_t { kNew, kRuns, kEnded };

  struct Thread {
    State state = State::kNew;
    jmp_buf place;
    std::unique_ptr<std::byte[]> stack;
  };

  static std::unique_ptr<Thread> MakeThread() {
    auto thread = std::make_unique<Thread>();
    thread->stack.reset(new std::byte[kStackBytes]);  // pages are not touched
    return thread;
  }

  // Jumps take no system call, as exchanging contexts does; to begin on a
  // stack of its own a thread needs a context.
  void GoOn(Thread* thread) {
    if (_setjmp(scheduler_) != 0) return;
    if (thread->state == State::kRuns) _longjmp(thread->place, 1);
    thread->state = State::kRuns;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = thread->stack.get();
    context.uc_stack.ss_size = kStackBytes;
    const auto address = reinterpret_cast<uintptr_t>(this);
    makecontext(&context, reinterpret_cast<void (*)()>(&Begin), 2,
                static_cast<unsigned>(address),
                static_cast<unsigned>(address >> 32));
    setcontext(&context);
  }

  // Arguments of contexts are int.
  static void Begin(unsigned lower, unsigned upper) {
    auto* const block = reinterpret_cast<HostBlock*>(
        static_cast<uintptr_t>(upper) << 32 | lower);
    (*block->body_)(block->current_);
    block->threads_[block->current_]->state = State::kEnded;
    _longjmp(block->scheduler_, 1);
  }

  const std::function<void(uint32_t)>* body_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  uint32_t current_ = 0;
  bool begins_forward_ = false;
  jmp_buf scheduler_;
};

#endif  // KILN_TESTS_JIT_COMPILE_HOST_HOST_BLOCK_H_
