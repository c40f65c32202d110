import termios

termios.tcflow(1, termios.TCOOFF)
