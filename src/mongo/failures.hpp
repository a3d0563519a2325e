// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/command.hpp"

#include <colock/adapter.hpp>

namespace colock::mongo::detail {

/// What an answer means for whoever has asked.
enum class verdict : unsigned char
{
    done,
    /// Another has written the same document at that moment: nothing has happened, it is worth asking again at once.
    conflict,
    /// Nothing has happened; another server, or the same a little later, may do it.
    later,
    /// It may have been carried out.
    unknown,
    refused,
};
[[nodiscard]] verdict judge(const answer& got) noexcept;

/// It was done, but no majority has confirmed it.
[[nodiscard]] bool lacks_confirmation(const answer& got) noexcept;

/// The server refuses the user, or the user has no right for the command: a server checks that before anything else.
[[nodiscard]] bool is_denial(const answer& got) noexcept;

/// Where commands go has to be found anew.
[[nodiscard]] bool is_leaving(const answer& got) noexcept;

/// For what is not done. The server's own text stays out of it: it may repeat what it was asked.
[[nodiscard]] failure_ptr failure_of(const answer& got);

/// The document of a key belongs to another program.
[[nodiscard]] failure_ptr foreign_document();

} // namespace colock::mongo::detail
