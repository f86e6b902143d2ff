// Negotiation as bytes in and bytes out, without a socket.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "export/nbd/exports.h"
#include "export/nbd/handshake.h"
#include "export/nbd/nbd_test_support.h"
#include "export/nbd/wire.h"
#include "io/manual_reactor.h"

namespace warpraid::nbd {
namespace {

constexpr std::uint64_t kDeviceBytes = 1 << 20;

std::string to_string(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A handshake that is spoken to in pieces of any size.
class Dialogue {
  public:
    explicit Dialogue(const std::vector<std::string>& names, bool read_only = false) {
        for (const std::string& name : names) {
            ExportInfo info;
            info.name = name;
            info.description = "about " + name;
            info.read_only = read_only;
            info.device = &device_;
            table_.add(info);
        }
        handshake_ = std::make_unique<Handshake>(table_);
    }

    /// The server works off what is there, as a connection would; returns its last verdict.
    HandshakeVerdict say(const Bytes& bytes) {
        input_.insert(input_.end(), bytes.begin(), bytes.end());
        HandshakeVerdict verdict = HandshakeVerdict::kAgain;
        while (verdict == HandshakeVerdict::kAgain) {
            const std::size_t before = output_.size();
            const auto progress = handshake_->advance(input_, output_);
            EXPECT_LE(output_.size() - before, Handshake::kAnswerBytesMax);
            EXPECT_LE(progress.consumed, input_.size());
            const auto consumed = static_cast<std::ptrdiff_t>(progress.consumed);
            input_.erase(input_.begin(), input_.begin() + consumed);
            verdict = progress.verdict;
        }
        return verdict;
    }
    HandshakeVerdict say_flags(std::uint32_t flags = kHandshakeFixedNewstyle | kHandshakeNoZeroes) {
        return say(number_bytes(flags));
    }
    HandshakeVerdict say_option(Option option, const Bytes& payload = {}) {
        return say(option_bytes(option, payload));
    }
    /// Says an option and returns all its answers.
    std::vector<WireOptionReply> ask(Option option, const Bytes& payload = {}) {
        say_option(option, payload);
        return take_replies(option);
    }
    std::vector<WireOptionReply> take_replies(Option option) {
        std::vector<WireOptionReply> replies;
        WireReader reader(output_);
        while (reader.left() > 0) {
            EXPECT_EQ(reader.take<std::uint64_t>(), kMagicOptionReply);
            EXPECT_EQ(reader.take<std::uint32_t>(), static_cast<std::uint32_t>(option));
            WireOptionReply reply;
            reply.option = option;
            reply.type = static_cast<OptionReply>(reader.take<std::uint32_t>());
            reply.payload = text_payload(reader.take_text(reader.take<std::uint32_t>()));
            EXPECT_TRUE(reader.ok());
            replies.push_back(reply);
        }
        output_.clear();
        return replies;
    }
    /// The only answer's type; fails when there is not exactly one.
    OptionReply ask_once(Option option, const Bytes& payload = {}) {
        const auto replies = ask(option, payload);
        EXPECT_EQ(replies.size(), 1U);
        return replies.empty() ? OptionReply::kServer : replies.front().type;
    }

    Bytes take_output() { return std::exchange(output_, {}); }
    ExportTable& table() { return table_; }
    const Handshake& handshake() const { return *handshake_; }
    std::size_t input_left() const { return input_.size(); }

  private:
    SystemClock clock_;
    io::ManualReactor reactor_{clock_};
    TestDevice device_{reactor_, kDeviceBytes, 512};
    ExportTable table_{32 * kMiB};
    std::unique_ptr<Handshake> handshake_;
    Bytes input_;
    Bytes output_;
};

TEST(Negotiation, greeting_is_the_one_of_the_specification) {
    Bytes greeting;
    Handshake::append_greeting(greeting);
    EXPECT_EQ(to_string(greeting), std::string("NBDMAGICIHAVEOPT\0\3", 18));
}

TEST(Negotiation, unknown_client_flags_end_the_connection) {
    Dialogue dialogue({"disk"});
    EXPECT_EQ(dialogue.say_flags(1u << 2), HandshakeVerdict::kViolation);
    EXPECT_EQ(dialogue.say_flags(), HandshakeVerdict::kClose) << "and it stays ended";
}

TEST(Negotiation, wrong_option_magic_ends_the_connection) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.say(text_payload("IHAVEOPX...a.whole.header")),
              HandshakeVerdict::kViolation);
}

TEST(Negotiation, export_name_gives_size_flags_and_zeroes_unless_declined) {
    for (const bool no_zeroes : {false, true}) {
        Dialogue dialogue({"disk"});
        dialogue.say_flags(no_zeroes ? kHandshakeNoZeroes : 0);
        EXPECT_EQ(dialogue.say_option(Option::kExportName, text_payload("disk")),
                  HandshakeVerdict::kTransmission);
        const Bytes answer = dialogue.take_output();
        ASSERT_EQ(answer.size(), no_zeroes ? 10U : 134U);
        WireReader reader(answer);
        EXPECT_EQ(reader.take<std::uint64_t>(), kDeviceBytes);
        EXPECT_EQ(reader.take<std::uint16_t>(), 0x16d);  // flags, flush, FUA, trim, zeroes, multi
        EXPECT_EQ(dialogue.handshake().agreement().export_name, "disk");
        EXPECT_FALSE(dialogue.handshake().agreement().structured_replies);
    }
}

TEST(Negotiation, export_name_that_is_unknown_closes) {
    Dialogue dialogue({"disk", "other"});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.say_option(Option::kExportName, text_payload("disk2")),
              HandshakeVerdict::kClose);
    EXPECT_TRUE(dialogue.take_output().empty());
}

TEST(Negotiation, list_names_everything_in_order_over_many_calls) {
    std::vector<std::string> names;
    for (int i = 100; i < 200; ++i) names.push_back("disk" + std::to_string(i));
    Dialogue dialogue(names);
    dialogue.table().find_exact("disk150")->removing = true;
    dialogue.say_flags();
    const auto replies = dialogue.ask(Option::kList);
    ASSERT_EQ(replies.size(), names.size());  // one is not listed, and the acknowledgement
    std::erase(names, "disk150");
    for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(replies[i].type, OptionReply::kServer);
        WireReader reader(replies[i].payload);
        EXPECT_EQ(reader.take_text(reader.take<std::uint32_t>()), names[i]);
        EXPECT_EQ(reader.take_text(reader.left()), "about " + names[i]);
    }
    EXPECT_EQ(replies.back().type, OptionReply::kAck);
}

TEST(Negotiation, list_of_nothing_and_list_with_payload) {
    Dialogue dialogue({});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.ask_once(Option::kList), OptionReply::kAck);
    EXPECT_EQ(dialogue.ask_once(Option::kList, text_payload("x")), OptionReply::kErrorInvalid);
    EXPECT_EQ(dialogue.ask_once(Option::kList), OptionReply::kAck);
}

TEST(Negotiation, info_tells_what_was_asked_and_stays_in_negotiation) {
    Dialogue dialogue({"disk"}, true);
    dialogue.say_flags();
    // Name, description, block size, and one that does not exist.
    const auto replies = dialogue.ask(Option::kInfo, info_payload("disk", {1, 2, 3, 77}));
    ASSERT_EQ(replies.size(), 5U);
    const std::string export_info = to_string(replies[0].payload);
    EXPECT_EQ(export_info, std::string("\0\0\0\0\0\0\0\x10\0\0\x01\x0f", 12));
    EXPECT_EQ(to_string(replies[1].payload),
              std::string("\0\3\0\0\2\0\0\4\0\0\2\0\0\0", 14));  // 512, 256 KiB, 32 MiB
    EXPECT_EQ(to_string(replies[2].payload), std::string("\0\1disk", 6));
    EXPECT_EQ(to_string(replies[3].payload), std::string("\0\2about disk", 12));
    EXPECT_EQ(replies[4].type, OptionReply::kAck);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(replies[std::size_t(i)].type, OptionReply::kInfo);
    EXPECT_EQ(dialogue.handshake().state(), HandshakeState::kOption);
}

TEST(Negotiation, go_agrees_and_leaves_the_bytes_behind_it) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    Bytes bytes = option_bytes(Option::kGo, info_payload("disk"));
    bytes.resize(bytes.size() + kRequestHeaderBytes);
    EXPECT_EQ(dialogue.say(bytes), HandshakeVerdict::kTransmission);
    EXPECT_EQ(dialogue.input_left(), kRequestHeaderBytes);
    EXPECT_EQ(dialogue.handshake().agreement().export_name, "disk");
}

TEST(Negotiation, the_empty_name_means_the_only_export) {
    Dialogue one({"disk"});
    one.say_flags();
    EXPECT_EQ(one.say_option(Option::kGo, info_payload("")), HandshakeVerdict::kTransmission);
    EXPECT_EQ(one.handshake().agreement().export_name, "disk");
    Dialogue two({"disk", "other"});
    two.say_flags();
    EXPECT_EQ(two.ask_once(Option::kGo, info_payload("")), OptionReply::kErrorUnknown);
    two.table().find_exact("other")->removing = true;
    EXPECT_EQ(two.say_option(Option::kGo, info_payload("")), HandshakeVerdict::kTransmission);
}

TEST(Negotiation, names_at_their_bounds) {
    const std::string longest(limits::kNbdExportNameBytesMax, 'n');
    Dialogue dialogue({longest, std::string("a\0b", 3)});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.ask_once(Option::kGo, info_payload(longest + "n")),
              OptionReply::kErrorUnknown);
    EXPECT_EQ(dialogue.ask_once(Option::kGo, info_payload(std::string(4096, 'n'))),
              OptionReply::kErrorUnknown);
    EXPECT_EQ(dialogue.ask_once(Option::kGo, info_payload("a")), OptionReply::kErrorUnknown);
    EXPECT_EQ(dialogue.ask(Option::kInfo, info_payload(std::string("a\0b", 3))).size(), 3U);
    EXPECT_EQ(dialogue.say_option(Option::kGo, info_payload(longest)),
              HandshakeVerdict::kTransmission);
    EXPECT_EQ(dialogue.handshake().agreement().export_name, longest);
}

TEST(Negotiation, malformed_info_is_refused_and_the_dialogue_goes_on) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    const Bytes good = info_payload("disk", {1});
    for (std::size_t length = 0; length < good.size(); ++length) {
        const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(dialogue.ask_once(Option::kGo, cut), OptionReply::kErrorInvalid) << length;
    }
    Bytes longer = good;
    longer.push_back(std::byte{0});
    EXPECT_EQ(dialogue.ask_once(Option::kGo, longer), OptionReply::kErrorInvalid);
    Bytes huge = good;
    huge[0] = std::byte{0xff};  // the name's length
    EXPECT_EQ(dialogue.ask_once(Option::kInfo, huge), OptionReply::kErrorInvalid);
    EXPECT_EQ(dialogue.say_option(Option::kGo, good), HandshakeVerdict::kTransmission);
}

TEST(Negotiation, structured_replies_add_the_flag_that_needs_them) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.ask_once(Option::kStructuredReply, text_payload("x")),
              OptionReply::kErrorInvalid);
    const auto flags = [&] {
        const auto replies = dialogue.ask(Option::kInfo, info_payload("disk"));
        return static_cast<unsigned>(replies.at(0).payload.at(11));
    };
    EXPECT_EQ(flags() & kFlagSendDontFragment, 0U);
    EXPECT_EQ(dialogue.ask_once(Option::kStructuredReply), OptionReply::kAck);
    EXPECT_NE(flags() & kFlagSendDontFragment, 0U);
    dialogue.say_option(Option::kGo, info_payload("disk"));
    EXPECT_TRUE(dialogue.handshake().agreement().structured_replies);
    EXPECT_FALSE(dialogue.handshake().agreement().allocation_context);
}

TEST(Negotiation, listing_contexts) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.ask_once(Option::kListMetaContext, context_payload("disk", {})),
              OptionReply::kErrorInvalid)
        << "structured replies come first";
    dialogue.ask(Option::kStructuredReply);
    const std::vector<std::vector<std::string>> matching = {
        {}, {"base:"}, {"base:allocation"}, {"qemu:dirty", "base:allocation"}};
    for (const auto& queries : matching) {
        const auto replies =
            dialogue.ask(Option::kListMetaContext, context_payload("disk", queries));
        ASSERT_EQ(replies.size(), 2U);
        EXPECT_EQ(replies[0].type, OptionReply::kMetaContext);
        EXPECT_EQ(to_string(replies[0].payload).substr(4), "base:allocation");
        EXPECT_EQ(replies[1].type, OptionReply::kAck);
    }
    EXPECT_EQ(dialogue.ask_once(Option::kListMetaContext, context_payload("disk", {"base"})),
              OptionReply::kAck);
    EXPECT_EQ(dialogue.ask_once(Option::kListMetaContext, context_payload("none", {})),
              OptionReply::kErrorUnknown);
}

/// Selects with `queries` for "disk" and goes to `name`; whether the context is then in force.
bool selected(const std::vector<std::string>& queries, std::string_view name,
              const Bytes& afterwards = {}) {
    Dialogue dialogue({"disk", "other"});
    dialogue.say_flags();
    dialogue.ask(Option::kStructuredReply);
    dialogue.ask(Option::kSetMetaContext, context_payload("disk", queries));
    if (!afterwards.empty()) dialogue.ask(Option::kSetMetaContext, afterwards);
    EXPECT_EQ(dialogue.say_option(Option::kGo, info_payload(name)),
              HandshakeVerdict::kTransmission);
    return dialogue.handshake().agreement().allocation_context;
}

TEST(Negotiation, selecting_contexts) {
    EXPECT_TRUE(selected({"base:allocation"}, "disk"));
    EXPECT_TRUE(selected({"x:y", "base:allocation", "base:allocation"}, "disk"));
    EXPECT_FALSE(selected({"base:"}, "disk")) << "a namespace selects nothing";
    EXPECT_FALSE(selected({}, "disk"));
    EXPECT_FALSE(selected({"base:allocation"}, "other")) << "it was selected for another export";
    EXPECT_FALSE(selected({"base:allocation"}, "disk", context_payload("disk", {})));
    EXPECT_FALSE(selected({"base:allocation"}, "disk", context_payload("none", {"x:y"})));
    EXPECT_FALSE(selected({"base:allocation"}, "disk", text_payload("junk")))
        << "a failed selection leaves none";
}

TEST(Negotiation, malformed_context_queries_are_refused) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    dialogue.ask(Option::kStructuredReply);
    const Bytes good = context_payload("disk", {"base:allocation", "x:y"});
    for (std::size_t length = 0; length < good.size(); ++length) {
        const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(dialogue.ask_once(Option::kSetMetaContext, cut), OptionReply::kErrorInvalid)
            << length;
    }
    Bytes many = context_payload("disk", {});
    many[8] = std::byte{0xff};  // the number of queries
    EXPECT_EQ(dialogue.ask_once(Option::kListMetaContext, many), OptionReply::kErrorInvalid);
}

TEST(Negotiation, abort_is_acknowledged_and_unknown_options_are_not) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    for (const std::uint32_t option : {0U, 4U, 5U, 11U, 0xffff'ffffU}) {
        EXPECT_EQ(dialogue.ask_once(static_cast<Option>(option), text_payload("payload")),
                  OptionReply::kErrorUnsupported);
    }
    EXPECT_EQ(dialogue.say_option(Option::kAbort), HandshakeVerdict::kClose);
    const auto replies = dialogue.take_replies(Option::kAbort);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].type, OptionReply::kAck);
}

TEST(Negotiation, options_that_are_too_long_are_skipped_until_it_is_absurd) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.ask_once(Option::kList, Bytes(kOptionBytesMax)), OptionReply::kErrorInvalid);
    EXPECT_EQ(dialogue.ask_once(Option::kList, Bytes(kOptionBytesMax + 1)),
              OptionReply::kErrorTooBig);
    EXPECT_EQ(dialogue.ask_once(static_cast<Option>(99), Bytes(kOptionSkippedBytesMax)),
              OptionReply::kErrorTooBig);
    EXPECT_EQ(dialogue.ask(Option::kList).size(), 2U) << "the stream is still in step";
    Bytes absurd = option_bytes(Option::kList, Bytes(kOptionSkippedBytesMax + 1));
    absurd.resize(kOptionHeaderBytes);
    EXPECT_EQ(dialogue.say(absurd), HandshakeVerdict::kViolation);
}

TEST(Negotiation, an_export_name_that_is_too_long_has_no_answer) {
    Dialogue dialogue({"disk"});
    dialogue.say_flags();
    EXPECT_EQ(dialogue.say_option(Option::kExportName, Bytes(kOptionBytesMax + 1)),
              HandshakeVerdict::kViolation);
    EXPECT_TRUE(dialogue.take_output().empty());
}

TEST(Negotiation, how_the_stream_is_cut_changes_nothing) {
    const std::uint64_t seed = seed_for_test();
    SeededRandom random(seed);
    for (int round = 0; round < 50; ++round) {
        Bytes script = number_bytes(kHandshakeFixedNewstyle);
        const auto add = [&](Option option, const Bytes& payload) {
            const Bytes bytes = option_bytes(option, payload);
            script.insert(script.end(), bytes.begin(), bytes.end());
        };
        for (std::uint64_t left = random.next() % 8; left > 0; --left) {
            const auto option = static_cast<Option>(random.next() % 12);
            if (option == Option::kExportName || option == Option::kAbort) continue;
            const bool junk = random.next() % 4 == 0;
            const std::size_t junk_bytes =
                random.next() % (random.next() % 8 == 0 ? 2 * kOptionBytesMax : 40);
            Bytes payload = junk ? pattern(junk_bytes, random.next()) : Bytes{};
            if (!junk && option == Option::kInfo) payload = info_payload("disk", {1});
            if (!junk && option == Option::kSetMetaContext) {
                payload = context_payload("disk", {"base:allocation"});
            }
            add(option == Option::kGo ? Option::kInfo : option, payload);
        }
        add(Option::kGo, info_payload("disk"));
        Dialogue whole({"disk", "other"});
        EXPECT_EQ(whole.say(script), HandshakeVerdict::kTransmission);
        Dialogue pieces({"disk", "other"});
        HandshakeVerdict verdict = HandshakeVerdict::kNeedInput;
        for (std::size_t at = 0; at < script.size();) {
            EXPECT_EQ(verdict, HandshakeVerdict::kNeedInput);
            const std::size_t count = std::min(script.size() - at, 1 + random.next() % 50);
            const auto start = script.begin() + static_cast<std::ptrdiff_t>(at);
            verdict = pieces.say(Bytes(start, start + static_cast<std::ptrdiff_t>(count)));
            at += count;
        }
        EXPECT_EQ(verdict, HandshakeVerdict::kTransmission);
        EXPECT_EQ(whole.take_output(), pieces.take_output());
        EXPECT_EQ(whole.handshake().agreement().allocation_context,
                  pieces.handshake().agreement().allocation_context);
    }
}

}  // namespace
}  // namespace warpraid::nbd
