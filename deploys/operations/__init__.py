"""Operations that pyinfra lacks or does in a way we cannot use."""
