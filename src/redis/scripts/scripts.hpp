// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/redis/request.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

/// A Lua script. It is sent by its digest, and as a whole if the server does not know the digest.
///
/// Every script tries a write before it returns a negative answer. A replica refuses the write, so an answer never
/// comes from the old data of a replica. A script that has nothing to write reads the lock by GETEX, or removes a
/// member that cannot exist from its set: both are writes to the server, change nothing, and are neither replicated nor
/// refused without memory. A script about one lock has no key but the lock and the index of its group. No script starts
/// with a shebang, which servers before version 7 do not know.
class script
{
public:
    /// How a script is sent: EVALSHA or EVAL.
    enum class form : unsigned char
    {
        digest,
        whole,
    };

    explicit script(std::string text);

    /// The first `keys` arguments are keys.
    template <class... Arguments>
    void push(boost::redis::request& request, form request_form, int keys, const Arguments&... arguments) const
    {
        if (request_form == form::digest)
            request.push("EVALSHA", digest_, keys, arguments...);
        else
            request.push("EVAL", text_, keys, arguments...);
    }
    /// \param words the number of keys, the keys and the arguments
    void push_words(boost::redis::request& request, form request_form, std::vector<std::string> words) const
    {
        const bool whole = request_form == form::whole;
        words.insert(words.begin(), whole ? text_ : digest_);
        request.push_range(whole ? "EVAL" : "EVALSHA", words);
    }
    [[nodiscard]] const std::string& digest() const noexcept { return digest_; }
    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string text_;
    std::string digest_;
};

/// All scripts. The comment above the text of each script begins with its "keys; arguments -> result". Optional keys
/// are in brackets.
struct scripts
{
    script rights;
    script anchor;
    script acquire;
    script acquire_plain;
    script acquire_shared;
    script acquire_all;
    script adopt;
    script adopt_shared;
    script hand_over;
    script release;
    script release_many;
    script withdraw;
    script release_shared;
    script extend;
    script extend_shared;
    script valid;
    script valid_shared;
    script inspect;
    script break_holders;
    script purge;
    script release_members;
    script extend_or_release_members;
    script enter_group;
    script leave_group;

    /// \param sharded whether the scripts publish their messages by SPUBLISH
    [[nodiscard]] static const scripts& get(bool sharded = false);
};

} // namespace colock::inline v0::redis::detail
