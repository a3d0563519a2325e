// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>

namespace command {

/// A new file for a ticket, which only its owner can read, because a ticket is a secret. Removed again by the
/// destructor unless the ticket was written.
class ticket_file
{
public:
    /// \throws usage_error the path is empty, the file exists, or it cannot be created
    explicit ticket_file(std::string path);
    ticket_file(const ticket_file&) = delete;
    ticket_file& operator=(const ticket_file&) = delete;
    ~ticket_file();

    /// Writes the ticket to the disk.
    /// \throws usage_error the file cannot be written
    void write(const std::string& ticket);

private:
    std::string path_;
    int descriptor_;
    bool is_written_ = false;
};

/// Returns the ticket in the file.
/// \throws usage_error the path is empty, or the file cannot be read
[[nodiscard]] std::string read_ticket(const std::string& path);

} // namespace command
