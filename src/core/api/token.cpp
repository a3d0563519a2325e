// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/generation.hpp>
#include <colock/token.hpp>

#include <boost/system/system_error.hpp>

#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace colock::inline v0 {

namespace {

class random_block
{
public:
    token::bytes_type take()
    {
        // After a fork, the child must not use random bytes that its parent has buffered.
        const unsigned generation = detail::generation.load(std::memory_order_relaxed);
        if (generation_ != generation || used_ == sizeof(bytes_))
            refill(generation);
        token::bytes_type result;
        std::memcpy(result.data(), bytes_ + used_, result.size());
        // The token is a secret of its holder, so the buffer keeps no copy.
        std::memset(bytes_ + used_, 0, result.size());
        used_ += result.size();
        return result;
    }

private:
    void refill(unsigned generation)
    {
        std::size_t filled = 0;
        while (filled < sizeof(bytes_)) {
            const ::ssize_t count = ::getrandom(bytes_ + filled, sizeof(bytes_) - filled, 0);
            if (count < 0 && errno == EINTR)
                continue;
            if (count < 0)
                throw boost::system::system_error(errno, boost::system::system_category(), "getrandom");
            filled += static_cast<std::size_t>(count);
        }
        generation_ = generation;
        used_ = 0;
    }

    static constexpr std::size_t tokens = 64;
    unsigned char bytes_[tokens * token::size];
    std::size_t used_ = sizeof(bytes_);
    unsigned generation_ = 0;
};

} // namespace

token token::generate()
{
    thread_local random_block block;
    return token(block.take());
}

void token::hex_to(char* out) const noexcept
{
    constexpr char digits[] = "0123456789abcdef";
    for (const unsigned char byte : bytes_) {
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
}

std::string token::hex() const
{
    std::string text(2 * size, '\0');
    hex_to(text.data());
    return text;
}

} // namespace colock::inline v0
