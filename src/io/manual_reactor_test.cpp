#include "io/manual_reactor.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/base_test_support.h"
#include "io/ram.h"

namespace warpraid::io {
namespace {

class CallingPoller final : public Poller {
  public:
    explicit CallingPoller(std::function<bool(std::uint64_t)> call) : call_(std::move(call)) {}
    bool poll(std::uint64_t now_ns) override { return call_(now_ns); }

  private:
    std::function<bool(std::uint64_t)> call_;
};

TEST(ManualReactor, runs_completions_then_tasks_then_pollers) {
    ManualClock clock;
    ManualReactor reactor(clock);
    const auto drive = make_null_drive(1 << 20, 512, reactor);
    std::vector<int> order;
    Command command;
    command.opcode = Opcode::kFlush;
    command.owner = &order;
    command.complete = [](Command& c) { static_cast<std::vector<int>*>(c.owner)->push_back(1); };
    CallingPoller poller([&](std::uint64_t now_ns) {
        EXPECT_EQ(now_ns, 77u);
        order.push_back(3);
        return false;
    });
    reactor.add_poller(poller);
    reactor.post([&] { order.push_back(2); });
    drive->submit(command);
    clock.now_ns = 77;
    EXPECT_TRUE(reactor.run_once(0));
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(reactor.now_ns(), 77u);
    EXPECT_FALSE(reactor.run_once(1'000'000'000)) << "nothing was left to do";
    reactor.remove_poller(poller);
    EXPECT_FALSE(reactor.run_once(0));
    EXPECT_EQ(order.size(), 4u);
}

TEST(ManualReactor, what_a_completion_submits_runs_in_the_next_turn) {
    const ManualClock clock;
    ManualReactor reactor(clock);
    const auto drive = make_null_drive(1 << 20, 512, reactor);
    struct Again : Command {
        Drive* target = nullptr;
        int runs = 0;
    } command;
    command.opcode = Opcode::kFlush;
    command.target = drive.get();
    command.complete = [](Command& c) {
        auto& again = static_cast<Again&>(c);
        if (++again.runs < 3) again.target->submit(again);
    };
    drive->submit(command);
    for (int turn = 1; turn <= 3; ++turn) {
        EXPECT_TRUE(reactor.run_once(0));
        EXPECT_EQ(command.runs, turn);
    }
    EXPECT_FALSE(reactor.run_once(0));
    EXPECT_EQ(drive->in_flight(), 0u);
}

TEST(ManualReactor, pollers_may_come_and_go_while_they_run) {
    const ManualClock clock;
    ManualReactor reactor(clock);
    int last_ran = 0;
    CallingPoller last([&](std::uint64_t) {
        ++last_ran;
        return false;
    });
    CallingPoller* self = nullptr;
    CallingPoller first([&](std::uint64_t) {
        reactor.remove_poller(*self);
        reactor.remove_poller(last);
        return true;
    });
    self = &first;
    reactor.add_poller(first);
    reactor.add_poller(last);
    EXPECT_TRUE(reactor.run_once(0));
    EXPECT_EQ(last_ran, 0) << "a removed poller ran";
    reactor.add_poller(last);
    EXPECT_FALSE(reactor.run_once(0));
    EXPECT_EQ(last_ran, 1);
}

TEST(ManualReactor, a_task_may_post_the_next_one_and_other_threads_may_post) {
    const ManualClock clock;
    ManualReactor reactor(clock);
    int ran = 0;
    reactor.post([&] {
        ++ran;
        reactor.post([&] { ++ran; });
    });
    EXPECT_TRUE(reactor.run_once(0));
    EXPECT_EQ(ran, 1);
    EXPECT_TRUE(reactor.run_once(0));
    EXPECT_EQ(ran, 2);
    std::thread other([&] {
        for (int i = 0; i < 1000; ++i) reactor.post([&] { ++ran; });
    });
    while (ran < 1002) reactor.run_once(0);
    other.join();
    EXPECT_FALSE(reactor.run_once(0));
}

TEST(ManualReactor, run_until_idle_gives_up_on_what_never_rests) {
    const ManualClock clock;
    ManualReactor reactor(clock);
    CallingPoller busy([](std::uint64_t) { return true; });
    reactor.add_poller(busy);
    EXPECT_FALSE(reactor.run_until_idle(10));
    reactor.remove_poller(busy);
    EXPECT_TRUE(reactor.run_until_idle(10));
}

}  // namespace
}  // namespace warpraid::io
