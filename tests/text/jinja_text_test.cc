// Text against the plain model: a string, and a flag for each byte.
#include <gtest/gtest.h>

#include <random>

#include "espalier/text/jinja/text.h"

namespace espalier::text::jinja {
namespace {

struct Model {
  std::string bytes;
  std::vector<bool> user;

  void append(const Model& other) {
    bytes += other.bytes;
    user.insert(user.end(), other.user.begin(), other.user.end());
  }
  Model substr(size_t begin, size_t end) const {
    const auto at = [&](size_t i) { return user.begin() + static_cast<int64_t>(i); };
    return {bytes.substr(begin, end - begin), {at(begin), at(end)}};
  }
};

void expect_same(const Text& text, const Model& model) {
  ASSERT_EQ(text.bytes(), model.bytes);
  std::vector<bool> user;
  for (size_t i = 0; i < text.size(); ++i) user.push_back(text.from_user(i));
  EXPECT_EQ(user, model.user);
  EXPECT_EQ(text.has_user(), std::find(user.begin(), user.end(), true) != user.end());
  Model runs;
  bool previous = false;
  text.for_each_run([&](std::string_view run, bool from_user) {
    ASSERT_FALSE(run.empty());
    ASSERT_TRUE(runs.bytes.empty() || from_user != previous);  // neighbours differ
    previous = from_user;
    runs.append({std::string(run), std::vector<bool>(run.size(), from_user)});
  });
  EXPECT_EQ(runs.bytes, model.bytes);
  EXPECT_EQ(runs.user, model.user);
}

TEST(JinjaText, AgreesWithAFlagForEachByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Text text;
    Model model;
    for (int step = 0; step < 40; ++step) {
      const bool from_user = random() % 2 == 0;
      const std::string piece(random() % 4, static_cast<char>('a' + random() % 26));
      Text other(piece, from_user);
      Model other_model{piece, std::vector<bool>(piece.size(), from_user)};
      switch (random() % 4) {
        case 0:
          text.append(piece, from_user);
          model.append(other_model);
          break;
        case 1:
          text.append(other);
          model.append(other_model);
          break;
        case 2:
          other.append(text);
          other_model.append(model);
          text = other;
          model = other_model;
          break;
        default: {
          const size_t begin = random() % (text.size() + 1);
          const size_t end = begin + random() % (text.size() - begin + 1);
          const Text part = text.substr(begin, end);
          expect_same(part, model.substr(begin, end));
          if (random() % 3 != 0) break;
          Model joined = model.substr(begin, end);
          joined.append(model);
          Text sum = part;
          sum.append(text);
          text = sum;
          model = joined;
        }
      }
      if (text.size() > 500) break;
      expect_same(text, model);
    }
    text.mark_all_from_user();
    model.user.assign(model.bytes.size(), true);
    expect_same(text, model);
  }
}

}  // namespace
}  // namespace espalier::text::jinja
