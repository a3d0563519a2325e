// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <string>

namespace colock::quorum {

/// What is known after some of the nodes have answered one question.
enum class verdict : unsigned char
{
    /// An answer that is still missing may decide.
    open,
    yes,
    no,
    /// No majority answered.
    failed,
};

/// The nodes' answers to one question so far. A node fails in one of three ways, which differ in what they leave
/// behind and in whether to ask again makes sense.
struct tally
{
    std::size_t nodes = 0;
    std::size_t yes = 0;
    std::size_t no = 0;
    /// Certainly not carried out.
    std::size_t away = 0;
    /// Not answered: carried out perhaps, or later.
    std::size_t unknown = 0;
    /// Refused for good.
    std::size_t refused = 0;
    /// The first failure of each kind.
    failure_ptr why_away{};
    failure_ptr why_unknown{};
    failure_ptr why_refused{};

    void add_failure(const failure_ptr& why);

    [[nodiscard]] std::size_t needed() const noexcept { return nodes / 2 + 1; }
    [[nodiscard]] std::size_t answered() const noexcept { return yes + no; }
    [[nodiscard]] std::size_t failed() const noexcept { return away + unknown + refused; }
    [[nodiscard]] std::size_t missing() const noexcept { return nodes - answered() - failed(); }

    /// What the question as a whole ended with. `errc::outcome_unknown` only if a majority may have said yes, and a
    /// refusal only if no majority is left that does not refuse: all else may go well the next time.
    [[nodiscard]] failure_ptr failure() const;
};

/// `yes`: granted. `no`: somebody else was there, and a majority answered: one leftover says little while the others
/// are away.
[[nodiscard]] verdict judge_create(const tally& so_far) noexcept;

/// Whether a majority holds it, for extend and is_valid. `no`: no majority can.
[[nodiscard]] verdict judge_held(const tally& so_far) noexcept;

/// A majority that holds nothing leaves no majority to hold. `yes`: there was one, as far as can be told.
[[nodiscard]] verdict judge_give_back(const tally& so_far) noexcept;

} // namespace colock::quorum
