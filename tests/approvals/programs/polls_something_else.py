import os
import select

print("polls", flush=True)
reading, writing = os.pipe()
select.select([reading], [0], [reading])
waiting = select.epoll()
waiting.register(reading, select.EPOLLIN)
waiting.poll()
