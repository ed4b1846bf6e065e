#include "run/session_pool.h"

#include "models.h"

namespace bezel {
namespace {

class SessionPoolTest : public testing::Test {
 protected:
  Loaded loaded_ = load_model(data_path("tiny-e2b.gguf"));

  // What a request does: takes a session and brings it to the prompt.
  static Session* use(SessionPool& pool, std::vector<u32> prompt) {
    auto session = run_now(pool.take({prompt}));
    if (!session) {
      ADD_FAILURE() << session.error().message;
      return nullptr;
    }
    EXPECT_TRUE(run_now((*session)->set_prompt({prompt})));
    return *session;
  }
};

TEST_F(SessionPoolTest, AConversationFindsItsSession) {
  SessionPool pool(*loaded_.backend, nullptr, 32, 3);
  Session* first = use(pool, {1, 2, 3, 4});
  Session* second = use(pool, {1, 9, 8, 7});
  EXPECT_NE(first, second);
  EXPECT_EQ(use(pool, {1, 2, 3, 4, 5, 6}), first);
  EXPECT_EQ(use(pool, {1, 9, 8, 7, 6}), second);
  EXPECT_EQ(use(pool, {1, 2, 3, 4, 5, 7}), first) << "an answer is tried again";
  EXPECT_EQ(pool.size(), 2u);
}

TEST_F(SessionPoolTest, TheOneUnusedForLongestGivesWay) {
  SessionPool pool(*loaded_.backend, nullptr, 32, 2);
  Session* first = use(pool, {1, 2, 3, 4});
  Session* second = use(pool, {1, 9, 8, 7});
  EXPECT_EQ(use(pool, {1, 2, 3, 4, 5}), first);
  EXPECT_EQ(use(pool, {1, 20, 21, 22}), second);
  EXPECT_EQ(use(pool, {1, 30, 31, 32}), first);
  EXPECT_EQ(pool.size(), 2u);
}

TEST_F(SessionPoolTest, ALongCommonBeginningIsWorthKeeping) {
  SessionPool pool(*loaded_.backend, nullptr, 32, 2);
  Session* other = use(pool, {30, 31, 32});
  Session* chat = use(pool, {1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16});
  EXPECT_EQ(use(pool, {30, 31, 32, 33}), other);
  EXPECT_EQ(use(pool, {1, 2, 3, 4, 5, 20}), chat) << "though used before the other";
}

TEST_F(SessionPoolTest, AnEmptySessionComesBeforeANewOne) {
  SessionPool pool(*loaded_.backend, nullptr, 32, 2);
  Session* first = use(pool, {1, 2});
  EXPECT_TRUE(run_now(first->rewind(0)));
  EXPECT_EQ(use(pool, {5, 6}), first);
  EXPECT_EQ(pool.size(), 1u);
}

TEST_F(SessionPoolTest, ThereIsAlwaysOne) {
  SessionPool pool(*loaded_.backend, nullptr, 32, 0);
  Session* only = use(pool, {1, 2, 3});
  EXPECT_EQ(use(pool, {7, 8}), only);
  EXPECT_EQ(pool.size(), 1u);
}

TEST_F(SessionPoolTest, AContextThatCannotBeIsAnError) {
  SessionPool pool(*loaded_.backend, nullptr, 0, 2);
  EXPECT_FALSE(run_now(pool.take({std::vector<u32>{1}})));
  EXPECT_EQ(pool.size(), 0u);
}

}  // namespace
}  // namespace bezel
